"""Fields of an invoice and of a merchant's invoice settings that say what is forgiven to payers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from chalicelib.api.fields import amount_text
from chalicelib.api.models import CamelRequest
from chalicelib.domain.invoices.terms import MOST_LATE, MOST_TOLERANCE, LatePayments
from chalicelib.domain.money import plain

PERCENT_DECIMALS = 4
DOLLAR_DECIMALS = 2


def _bounded(most: int | None, decimals: int) -> BeforeValidator:
    """A plain decimal of at most so many decimals, and at most `most`."""

    def check(value: Any) -> Any:
        text = amount_text(value)
        if len(text.partition(".")[2]) > decimals:
            raise PydanticCustomError("constraint", "{text}", {"text": f"must have at most {decimals} decimals"})
        if most is not None and (int(text.partition(".")[0]), text.partition(".")[2].strip("0")) > (most, ""):
            raise PydanticCustomError("constraint", "{text}", {"text": f"must be 0 to {most}"})
        return plain(text)

    return BeforeValidator(check)


def _schema(text: str, **number: int) -> WithJsonSchema:
    kinds = [{"type": "number", "minimum": 0, **number}, {"type": "string", "pattern": f"^{text}$", "maxLength": 40}]
    return WithJsonSchema({"anyOf": kinds})


_PART = rf"(\.[0-9]{{1,{PERCENT_DECIMALS}}})?"
TolerancePercent = Annotated[
    str,
    _bounded(MOST_TOLERANCE, PERCENT_DECIMALS),
    _schema(rf"(10(\.0{{1,{PERCENT_DECIMALS}}})?|[0-9]{_PART})", maximum=MOST_TOLERANCE),
]
LatePercent = Annotated[
    str,
    _bounded(MOST_LATE, PERCENT_DECIMALS),
    _schema(rf"(50(\.0{{1,{PERCENT_DECIMALS}}})?|[1-4]?[0-9]{_PART})", maximum=MOST_LATE),
]
Dollars = Annotated[str, _bounded(None, DOLLAR_DECIMALS), _schema(rf"(0|[1-9][0-9]{{0,30}})(\.[0-9]{{1,{DOLLAR_DECIMALS}}})?")]
LATE = (
    "What comes after the time is over. `manual`: the invoice stays expired. `accept`: it counts like the rest. "
    "`acceptWithinPercent`: it completes the invoice where its worth at its time covers the rest."
)
LATE_PERCENT = "With `acceptWithinPercent`: less so many percent of the rest."


class InvoiceTerms(CamelRequest):
    """What is forgiven. Percentages and US dollars are numbers or strings, exact."""

    tolerance_percent: Annotated[
        TolerancePercent | None,
        Field(description="A shortfall of so many percent of the price is forgiven.", examples=[1]),
    ] = None
    tolerance_max_usd: Annotated[
        Dollars | None,
        Field(alias="toleranceMaxUSD", description="And no more than so many US dollars; null: no such bound.", examples=[0.5]),
    ] = None
    late_payments: Annotated[LatePayments | None, Field(description=LATE, examples=["accept"])] = None
    late_payments_percent: Annotated[LatePercent | None, Field(description=LATE_PERCENT, examples=[2])] = None

    @property
    def terms(self) -> dict[str, Any]:
        """The fields that were sent. A bound in dollars may be taken away."""
        sent = {name: getattr(self, name) for name in InvoiceTerms.model_fields}
        bound = "tolerance_max_usd" in self.model_fields_set
        return {name: value for name, value in sent.items() if value is not None or (bound and name == "tolerance_max_usd")}
