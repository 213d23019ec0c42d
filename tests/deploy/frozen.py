"""The names that stored data and deployed stages know: renaming one loses open work or stored records from sight.

`python -m tests.deploy.frozen` writes them as they are now into `frozen_names.json`. That is right after something was added, and
never a way to make a renaming pass.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

from chalicelib.domain.webhooks.events import EVENT_NAMES
from chalicelib.domain.work import Command, WorkKind
from chalicelib.settings import Settings
from chalicelib.store.indexes import INDEXES
from chalicelib.store.schema import RECORDS
from infra.deploy import TEMPLATE
from infra.deployment.key_stack import KEYS
from tests.deploy.declared import consumers, functions, schedules

LIST = Path(__file__).with_name("frozen_names.json")
PRODUCT = TEMPLATE.parents[1] / "chalicelib"


class _Named:
    """Has every field; each is its own name, so that a key made of it shows how keys are made."""

    def __getattr__(self, name: str) -> Any:
        return _Field(name)


class _Field(str):
    """Text of a field's name, which also has fields, and is a number where a key counts."""

    def __getattr__(self, name: str) -> Any:
        return _Field(f"{self}.{name}")

    def split(self, *_: Any) -> list[Any]:
        return [_Field(f"{self}.{n}") for n in range(3)]

    def __int__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


def shape(key: Any) -> str:
    return re.sub(r"\d{3,}", "N", str(key(_Named())))


@functools.cache
def _types() -> dict[str, type]:
    """Every class of the parts that have stored types, by its name; the domain's before others of that name."""
    found: dict[str, type] = {}
    for file in (each for part in ("domain", "usecases", "custody") for each in sorted((PRODUCT / part).rglob("*.py"))):
        parts = file.relative_to(PRODUCT.parent).with_suffix("").parts
        module = import_module(".".join(part for part in parts if part != "__init__"))
        for name, value in vars(module).items():
            if isinstance(value, type) and value.__module__ == module.__name__:
                found.setdefault(name, value)
    return found


def _inside(hint: Any) -> Iterator[type]:
    """The dataclasses and enums that a field's type names."""
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, enum.Enum)):
        yield hint
    for argument in get_args(hint):
        yield from _inside(argument)


@functools.cache
def _stored() -> dict[str, Any]:
    """The fields of every stored record, of what lies in one, and the values of enums there."""
    known, found = _types(), {}
    waiting = [known[name] for name in RECORDS] + [Command]
    while waiting:
        kind = waiting.pop()
        if kind.__name__ in found:
            continue
        if issubclass(kind, enum.Enum):
            found[kind.__name__] = sorted(str(member.value) for member in kind)
            continue
        hints = get_type_hints(kind)
        fields = [field.name for field in dataclasses.fields(kind)]
        found[kind.__name__] = sorted(fields)
        waiting += [each for name in fields for each in _inside(hints[name])]
    return found


def _defaults() -> dict[str, str]:
    """What is read where an item of a brief kind has no such field (`store/brevity.py`)."""
    brief = {name: _types()[name] for name, kind in RECORDS.items() if kind.brief}
    return {
        f"{name}.{field.name}": repr(field.default)
        for name, kind in sorted(brief.items())
        for field in dataclasses.fields(kind)
        if field.default is not dataclasses.MISSING
    }


def _literals() -> dict[str, list[str]]:
    """The values of the Literals that stored fields have."""
    found = {}
    for name, kind in _types().items():
        if dataclasses.is_dataclass(kind) and name in _stored():
            for field, hint in get_type_hints(kind).items():
                values = sorted(_texts(hint))
                if values:
                    found[f"{name}.{field}"] = values
    return found


def _texts(hint: Any) -> Iterator[str]:
    for argument in get_args(hint):
        if isinstance(argument, str):
            yield argument
        yield from _texts(argument)


def alarms() -> list[str]:
    """The text of every alarm that the product logs."""
    from tests.deploy.alarms import ALARMS

    return sorted({text for _, text in ALARMS})


def money(template: str) -> dict[str, str]:
    """Logical ids, with types, of what is kept when its stack goes: under another id CloudFormation would make it anew, empty."""
    blocks = re.findall(r"^  (\w+):\n((?:    .*\n|\n)+)", template.partition("\nResources:\n")[2], re.MULTILINE)
    kept = {name: body for name, body in blocks if re.search(r"^    DeletionPolicy: Retain", body, re.MULTILINE)}
    return {name: re.search(r"Type: (\S+)", body)[1] for name, body in sorted(kept.items())}  # type: ignore[index]


@functools.cache
def names() -> dict[str, Any]:
    """All of them, as they are now."""
    template = TEMPLATE.read_text() + KEYS.read_text()
    return {
        "work": sorted(get_args(WorkKind)),
        "events": sorted(EVENT_NAMES),
        "records": {name: f"{kind.table}: {shape(kind.pk)} / {shape(kind.sk)}" for name, kind in sorted(RECORDS.items())},
        "fields": dict(sorted(_stored().items())),
        "defaults": _defaults(),
        "values": dict(sorted(_literals().items())),
        "indexes": sorted(f"{index.table}.{index.name}: {index.pk} / {index.sk}" for index in INDEXES.values()),
        "resources": sorted(set(re.findall(r"!Sub \"?'?(gateway-[^\"'\s]+|/gateway[^\"'\s]+)", template))),
        "money": {**money(TEMPLATE.read_text()), **money(KEYS.read_text())},
        "functions": sorted(functions()),
        "queues": consumers("stage"),
        "schedules": schedules(),
        "settings": sorted(field.name for field in dataclasses.fields(Settings)),
        "alarms": alarms(),
    }


if __name__ == "__main__":
    LIST.write_text(json.dumps(names(), indent=1, sort_keys=True) + "\n")
