"""Models as JSON schemas (OpenAPI 3.1 uses JSON Schema 2020-12), each once and under its own name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

REF = "#/components/schemas/{model}"
Schema = dict[str, Any]


class _Untitled(GenerateJsonSchema):
    """Fields get no title made of their name: it says nothing more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def components(models: Sequence[type[BaseModel]]) -> Schema:
    """The schemas of all models and of their parts, by name, in alphabetical order."""
    _, found = models_json_schema(
        [(model, "validation") for model in models], by_alias=True, ref_template=REF, schema_generator=_Untitled
    )
    schemas: Schema = found.get("$defs", {})
    for schema in schemas.values():
        schema.pop("title", None)
        for field in schema.get("properties", {}).values():
            if field.get("default", ...) is None:  # left out is not the same as null
                del field["default"]
            _say_it_of_the_field(field)
    return dict(sorted(schemas.items()))


def _say_it_of_the_field(field: Schema) -> None:
    """Words and examples of the only kind beside null are the field's own: readers look for them there."""
    kinds = [kind for kind in field.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) == 1:
        for name in ("description", "examples"):
            value = kinds[0].pop(name, None)
            if value is not None:
                field.setdefault(name, value)


def properties(model: type[BaseModel]) -> tuple[Schema, set[str]]:
    """The fields of a model that is no object of the document (a query), and which are required."""
    schema = model.model_json_schema(by_alias=True, ref_template=REF, schema_generator=_Untitled)
    return schema.get("properties", {}), set(schema.get("required", ()))


def ref(name: str) -> Schema:
    return {"$ref": REF.format(model=name)}


def model_of(answer: Any) -> type[BaseModel]:
    """The model in a record's type: itself, or what a list has."""
    model: type[BaseModel] = (get_args(answer) or (answer,))[0]
    return model


def of_answer(answer: Any) -> Schema:
    """The schema of a record's type."""
    one = ref(model_of(answer).__name__)
    return {"type": "array", "items": one} if get_args(answer) else one


def example(schema: Schema, schemas: Schema) -> Any:
    """A value for `schema`: its own example; else that of each required field, and of all that have one where those are too few.

    So an answer's example is made of those of its fields: a record says one itself only where they do not fit together.
    """
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    if said := _said(schema):
        return said[0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return example(schema[several][0], schemas)
    return _of_type(schema, schemas)


def _said(schema: Schema) -> Sequence[Any]:
    """The values that a schema names itself, the best one first."""
    values: Sequence[Any] = schema.get("examples") or schema.get("enum") or ()
    return values or [schema[name] for name in ("const", "default") if name in schema]


def _of_type(schema: Schema, schemas: Schema) -> Any:
    match schema.get("type"):
        case "object":
            return {name: example(field, schemas) for name, field in _exemplary(schema).items()}
        case "array":
            return [example(schema.get("items", {}), schemas)] if schema.get("minItems", 1) else []
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "string":
            return "string"
    return None


def _exemplary(schema: Schema) -> Schema:
    """The fields of an object that its example shows."""
    fields: Schema = schema.get("properties", {})
    wanted = schema.get("required", [])
    if len(wanted) < schema.get("minProperties", 1):
        wanted = [*wanted, *(name for name, field in fields.items() if _has_example(field))]
    return {name: field for name, field in fields.items() if name in wanted}


def _has_example(field: Schema) -> bool:
    return bool(field.get("examples")) or any(kind.get("examples") for kind in field.get("anyOf", ()))
