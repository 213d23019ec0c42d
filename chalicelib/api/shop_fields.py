"""Fields of a merchant's shop in `PUT /merchant/settings`."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from chalicelib.api.models import CamelRequest
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.merchants.shop import MOST_NAME, MOST_ORIGINS, name_problem, origin_of
from chalicelib.usecases.merchants.shop import Wanted

_MOST_BASE64 = 90_000
"""Characters: 64 KiB in base64, and the beginning of a data: URI."""
_DATA_URI = "data:image/png;base64,"
_MOST_ORIGIN = 300


def _wrong(text: str) -> PydanticCustomError:
    return PydanticCustomError("constraint", "{text}", {"text": text})


def _name(value: Any) -> Any:
    if isinstance(value, str) and (problem := name_problem(value)) is not None:
        raise _wrong(problem)
    return value


def _logo(value: Any) -> Any:
    """The rewritten image."""
    from chalicelib.encoding.png import MOST_BYTES, NotAnImage, rewritten  # a change of a logo alone needs it

    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong("must be a PNG in base64, as a string")
    if len(value) > _MOST_BASE64:
        raise _wrong(f"must have at most {MOST_BYTES // 1024} KiB")
    try:
        return rewritten(base64.b64decode(value.removeprefix(_DATA_URI), validate=True))
    except binascii.Error:
        raise _wrong("must be a PNG in base64") from None
    except NotAnImage as reason:
        raise _wrong(str(reason)) from None


Logo = Annotated[
    Any,
    BeforeValidator(_logo),
    Field(
        description="A PNG of at most 64 KiB and 512 pixels a side, in base64; null: none. It is stored rewritten, without "
        "anything but the image. Other formats are refused, with the reason.",
        json_schema_extra={"type": ["string", "null"], "contentEncoding": "base64", "contentMediaType": "image/png"},
        examples=["iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="],
    ),
]


class ShopChange(CamelRequest):
    """What payers see of the shop. What is not sent stays as it is; null takes it away."""

    selecting = frozenset()

    name: Annotated[
        str | None,
        BeforeValidator(_name),
        Field(
            description="Stands at the top of the pages.",
            examples=["Shoes & Co"],
            json_schema_extra={"minLength": 1, "maxLength": MOST_NAME},
        ),
    ] = None
    color: Annotated[
        str | None, Field(pattern=r"^#[0-9A-Fa-f]{6}$", description="`#rrggbb`: of buttons and bars.", examples=["#0b6e4f"])
    ] = None
    logo: Logo = None
    frame_ancestors: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=_MOST_ORIGIN)]],
            Field(
                max_length=MOST_ORIGINS,
                description="Origins whose pages may show the checkout and payment links in a frame; empty: none.",
                examples=[["https://shop.example"]],
            ),
        ]
        | None
    ) = None

    def wanted(self, *, allow_private: bool) -> Wanted:
        """What is to change. The origins were checked by `problems_of`."""
        sent: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if sent.get("color") is not None:
            sent["color"] = sent["color"].lower()
        if "frame_ancestors" in sent:
            origins = [origin_of(text, allow_private=allow_private) for text in sent["frame_ancestors"] or ()]
            sent["frame_ancestors"] = tuple(dict.fromkeys(origins))
        return sent


def problems_of(shop: Any, *, allow_private: bool) -> list[FieldProblem]:
    """What is wrong with the origins in the raw value of the field `shop`, beside what its model says."""
    origins = shop.get("frameAncestors") if isinstance(shop, dict) else None
    problems = []
    for place, text in enumerate(origins[:MOST_ORIGINS] if isinstance(origins, list) else ()):
        if not isinstance(text, str) or not 1 <= len(text) <= _MOST_ORIGIN:
            continue  # the model has said so
        try:
            origin_of(text, allow_private=allow_private)
        except ValueError as reason:
            problems.append(FieldProblem(f"shop.frameAncestors.{place}", text[:100], (str(reason),)))
    return problems
