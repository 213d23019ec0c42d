"""Fields that requests for invoices share with payment links: prices in fiat, where a payer is sent, and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.fields import json_up_to, positive_amount
from chalicelib.api.problems import shown
from chalicelib.domain.catalogue.fiats import MOST_DECIMALS
from chalicelib.domain.errors import FieldProblem

INVOICE_METADATA_BYTES = 4 * 1024
"""Less than elsewhere: it is in every event of its invoice."""


def _redirect(value: Any) -> Any:
    """A URL that a payer's browser may be sent to: no script, no name and password, nothing that breaks a header."""
    if not isinstance(value, str):
        return value
    words = "must be an http or https URL without user name, blanks and control characters"
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and parts.hostname and parts.username is None and parts.password is None
        fine = fine and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine or "\\" in value or any(char.isspace() or not char.isprintable() for char in value):
        raise PydanticCustomError("constraint", "{text}", {"text": words})
    return value


def _fiat_amount(value: Any) -> str:
    text = positive_amount(value)
    if len(text.partition(".")[2]) > MOST_DECIMALS:
        raise PydanticCustomError("constraint", "{text}", {"text": f"must have at most {MOST_DECIMALS} decimals"})
    return text


def _fiat(value: Any) -> Any:
    if isinstance(value, str) and not (len(value) == 3 and value.isascii() and value.isalpha()):
        raise PydanticCustomError("constraint", "{text}", {"text": "must be a currency's code of three letters (ISO 4217)"})
    return value.upper() if isinstance(value, str) else value


RedirectUrl = Annotated[
    str, Field(max_length=2000, description="Where to send who has paid.", examples=["https://shop.example/thanks"]),
    BeforeValidator(_redirect),
]  # fmt: skip
CancelUrl = Annotated[
    str, Field(max_length=2000, description="Where to send who does not pay.", examples=["https://shop.example/basket"]),
    BeforeValidator(_redirect),
]  # fmt: skip
Metadata = Annotated[
    dict[str, Any],
    json_up_to(INVOICE_METADATA_BYTES),
    Field(
        description=f"Any JSON object of at most {INVOICE_METADATA_BYTES} bytes: in answers to keys and in events, "
        "on no public page.",
        examples=[{"order": "A-17"}],
    ),
]
FiatAmount = Annotated[
    str, Field(description="The price in a fiat currency, exact.", examples=["49.90"]), BeforeValidator(_fiat_amount)
]
FiatCurrency = Annotated[str, Field(description="ISO 4217.", examples=["EUR"]), BeforeValidator(_fiat)]


def price_problems(sent: Mapping[str, Any], wrong: frozenset[str]) -> list[FieldProblem]:
    """Of the fields of a price: it is `amount`, or `fiatAmount` with `fiatCurrency`."""
    amount, fiat, currency = (sent.get(name) for name in ("amount", "fiatAmount", "fiatCurrency"))
    problems = []
    if amount is None and fiat is None and currency is None:
        problems.append(FieldProblem("amount", None, ("is required, or fiatAmount with fiatCurrency",)))
    if amount is not None and fiat is not None and "fiatAmount" not in wrong:
        problems.append(FieldProblem("fiatAmount", shown("fiatAmount", fiat), ("must not be there together with amount",)))
    if fiat is not None and currency is None:
        problems.append(FieldProblem("fiatCurrency", None, ("is required with fiatAmount",)))
    if currency is not None and fiat is None:
        problems.append(FieldProblem("fiatAmount", None, ("is required with fiatCurrency",)))
    return problems
