"""The query model of a list, made from its declaration: pydantic checks every parameter, and the OpenAPI document shows it.

Each field is a parameter by itself (`status`), and one for each operator (`status[ne]`, `createdAt[gte]`). They are plain
fields of the model, whose aliases are the parameters' names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, ValidationInfo, WrapValidator, create_model, model_validator
from pydantic_core import PydanticCustomError

from chalicelib.api.lists.fields import Condition, ListField, Operator, Parse, parsed
from chalicelib.api.models import Query
from chalicelib.domain.catalogue.catalogue import Catalogue

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
DEEPEST = 10_000
"""How far `page` reaches and `total` counts; a cursor goes on for ever."""
Order = Literal["asc", "desc"]
_WORDS: dict[Operator, str] = {
    "eq": "is this",
    "ne": "is not this, or there is none",
    "gt": "is more than this",
    "gte": "is this or more",
    "lt": "is less than this",
    "lte": "is this or less",
    "in": "is one of these, separated by commas",
    "like": "contains this, whatever the case; with `%` the whole text must match, `%` standing for any characters",
}


@dataclass(frozen=True, slots=True)
class Shortcut:
    """Another name for a field with an operator, such as `from_date` for `created_at[gte]`. Without `parse` the field reads it."""

    name: str
    field: str
    operator: Operator
    description: str
    parse: Parse | None = None
    examples: tuple[str, ...] = ()


class PageQuery(Query):
    """What all lists take. `conditions` are the filters that were sent."""

    filters: ClassVar[Mapping[str, tuple[ListField, Operator]]] = {}
    """Names of the model's own fields, and what each filters by."""
    sorts: ClassVar[Mapping[str, ListField]] = {}
    names: ClassVar[tuple[str, ...]] = ()

    page: Annotated[
        int, Field(ge=1, le=DEEPEST, description=f"From 1. `page * limit` reaches {DEEPEST}: beyond it use `cursor`.")
    ] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Entries of a page.")] = DEFAULT_LIMIT
    per_page: Annotated[int | None, Field(alias="perPage", ge=1, le=MAX_LIMIT, description="Another name for `limit`.")] = None
    order: Annotated[Order, Field(description="Which end of the order comes first.")] = "desc"

    @model_validator(mode="before")
    @classmethod
    def _one_limit(cls, sent: Any) -> Any:
        if isinstance(sent, dict) and "perPage" in sent and "limit" in sent:
            raise PydanticCustomError("constraint", "{text}", {"text": "limit and perPage are the same: send one of them"})
        return sent

    @classmethod
    def unknown(cls, name: str) -> str:
        base, bracket, _ = name.partition("[")
        operators = [operator for field, operator in cls.filters.values() if base in (field.name, *field.aliases)]
        if bracket and operators:
            return f"is not known; operators of {base} are: {', '.join(dict.fromkeys(operators))}"
        known = f"is not known; known are: {', '.join(sorted(cls.names))}"
        field = next((field for field, _ in cls.filters.values()), None)
        return known if field is None else f"{known}; also with an operator, such as {field.name}[ne]"

    @property
    def size(self) -> int:
        """`limit`, by whichever name it was sent."""
        return self.per_page or self.limit

    @property
    def limited(self) -> bool:
        """Whether a page was asked for at all."""
        return bool(self.model_fields_set & {"page", "limit", "per_page"})

    @property
    def conditions(self) -> list[Condition]:
        """The filters that were sent."""
        sent = self.model_fields_set
        return [
            Condition(field, "in" if isinstance(value, tuple) else operator, value)
            for name, (field, operator) in self.filters.items()
            if name in sent and (value := getattr(self, name)) is not None
        ]

    @property
    def sorted_by(self) -> ListField | None:
        """The field that `sort` names; None: the list's own order."""
        name = getattr(self, "sort", None)
        return None if name is None else self.sorts[name]


class ListQuery(PageQuery):
    """What lists with a cursor take."""

    cursor: Annotated[
        str | None,
        Field(
            max_length=2000,
            description="`next_cursor` of the page before, in place of `page`: reaches any depth at the same cost. "
            "The other parameters must stay as they were.",
        ),
    ] = None


def query_model(
    name: str, fields: Sequence[ListField], shortcuts: Sequence[Shortcut] = (), *, cursor: bool = True, order: Order = "desc"
) -> type[Any]:
    """The query model of a list with these fields: a ListQuery, or a PageQuery where `cursor` is False.

    `order` is the one that counts unless another is sent.
    """
    made: dict[str, Any] = {}
    filters: dict[str, tuple[ListField, Operator]] = {}
    for field in fields:
        for public in (field.name, *field.aliases):
            for operator in field.operators:
                own = f"{public}__{operator}"
                alias = public if operator == "eq" else f"{public}[{operator}]"
                made[own] = _parameter(field, operator, alias, f"{field.description} Filter: {_WORDS[operator]}.")
                filters[own] = (field, operator)
            made[f"{public}__eq_"] = _parameter(field, "eq", f"{public}[eq]", f"The same as `{public}`.")
            filters[f"{public}__eq_"] = (field, "eq")
    by_name = {field.name: field for field in fields}
    for shortcut in shortcuts:
        field = by_name[shortcut.field]
        made[f"{shortcut.name}__"] = _parameter(
            field, shortcut.operator, shortcut.name, shortcut.description, shortcut.parse, shortcut.examples
        )
        filters[f"{shortcut.name}__"] = (field, shortcut.operator)
    sorts = {public: field for field in fields if field.sortable for public in (field.name, *field.aliases)}
    if sorts:
        words = "What the list is sorted by. Without it: by time of creation." if cursor else "What the list is sorted by."
        made["sort"] = (Literal[tuple(sorts)] | None, Field(default=None, description=words))
    if order != "desc":
        made["order"] = (Order, Field(default=order, description="Which end of the order comes first."))
    model = cast(Any, create_model(name, __base__=ListQuery if cursor else PageQuery, **made))
    model.filters, model.sorts = filters, sorts
    known = (field.alias or own for own, field in model.model_fields.items())
    others = {alias for field in fields for alias in field.aliases}
    model.names = tuple(name for name in known if "[" not in name and name not in others)
    return cast(type[Any], model)


def _parameter(
    field: ListField, operator: Operator, alias: str, description: str, parse: Parse | None = None, examples: tuple[str, ...] = ()
) -> tuple[Any, Any]:
    several = operator == "eq" and field.several
    extra: dict[str, Any] = {}
    if field.values and operator in ("eq", "ne") and not several:
        extra["enum"] = list(field.values)
    if field.values and operator == "in":
        one = f" *({'|'.join(map(re.escape, field.values))}) *"
        extra["pattern"] = f"^{one}(,{one})*$"
    shown = list(examples or field.examples)
    if operator == "in" and shown:
        shown = [",".join((field.values or tuple(shown))[:2])]
    if operator == "like":
        shown = []
    check = _check(field, operator, parse, several)
    hint: Any = Annotated[list[str] | None if several else str | None, check]
    # The parsed value stands where the text was: what it is has been checked here, not by pydantic.
    info = Field(default=None, alias=alias, description=description, examples=shown or None, json_schema_extra=extra or None)
    return hint, info


def _check(field: ListField, operator: Operator, parse: Parse | None, several: bool) -> Any:
    def check(sent: Any, _: Callable[[Any], Any], info: ValidationInfo) -> Any:
        catalogue: Catalogue | None = info.context
        texts = sent if isinstance(sent, list) else [sent]
        if not all(isinstance(one, str) for one in texts):
            raise PydanticCustomError("string_type", "must be a string")
        try:
            if several:
                values = parsed(field, "in", ",".join(texts), catalogue)
                return values[0] if len(values) == 1 else values
            if operator == "in":
                return parsed(field, "in", ",".join(texts), catalogue)
            if len(texts) > 1:
                raise ValueError("may be sent only once")
            return parse(texts[0], catalogue) if parse is not None else parsed(field, operator, texts[0], catalogue)
        except ValueError as error:
            raise PydanticCustomError("constraint", "{text}", {"text": str(error)}) from None

    return WrapValidator(check)
