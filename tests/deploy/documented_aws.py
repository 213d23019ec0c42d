"""The commands of AWS's own command line that pages tell an operator to type, read as that program reads them: service, operation
and arguments, by botocore's descriptions of the services. The program itself is no package that is installed here.

https://docs.aws.amazon.com/cli/latest/reference/
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import botocore.session
from botocore import xform_name
from botocore.validate import ParamValidator

ROOT = Path(__file__).resolve().parents[2]
_SERVICES = {"s3api": "s3"}
_RENAMED = {("sns", "notification-endpoint"): "Endpoint"}
_OF_ALL = ("debug", "query", "output", "region", "profile")
_NUMBERS: dict[str, type[int] | type[float]] = {"integer": int, "long": int, "double": float}
_POSITIONAL = {("lambda", "Invoke"): 1}
"""How many words without an option an operation has: the file for the answer."""


UNREAD = object()
"""Stands for what is in a file or a variable, or where a page has a name such as KEY."""


class Asked(NamedTuple):
    service: str
    operation: str
    arguments: dict[str, Any]


def commands(page: Path) -> list[str]:
    """The commands of a page: lines of blocks, and what stands as code in a sentence or a table."""
    text = page.read_text(encoding="utf-8")
    lines = [line.strip().partition("   #")[0].strip() for line in text.splitlines() if line.strip().startswith("aws ")]
    return list(dict.fromkeys([*lines, *re.findall(r"`(aws [^`]* --[^`]*)`", text)]))


def section(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next one of its level. Raises LookupError where there is none."""
    _, found, rest = f"\n{page.read_text(encoding='utf-8')}".partition(f"\n{heading}\n")
    if not found:
        raise LookupError(f"{page.name} has no {heading}")
    return rest.partition("\n" + heading.partition(" ")[0] + " ")[0]


def typed(text: str) -> list[str]:
    """The commands of a text's blocks, in their order, with each that is there twice."""
    return [line.strip().partition("   #")[0].strip() for line in text.splitlines() if line.strip().startswith("aws ")]


def assigned(text: str) -> dict[str, str]:
    """The variables that a text has the shell set, by the words that stand for them."""
    found = re.findall(r"(?:^ *|; )([A-Z]+)=([^;\s]+)", text, re.MULTILINE)
    return {f"${name}": value for name, value in found}


def run(command: str, given: Mapping[str, str]) -> Any:
    """Do what a command asks for, against whatever AWS boto3 finds; the answer. `given`: what stands for a name of the page, or
    for a variable; files are those of the project. Raises ValueError for what the program would refuse, botocore's errors."""
    for name in sorted(given, key=len, reverse=True):
        command = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _, value=given[name]: value, command)  # type: ignore[misc]
    command = re.sub(r"file://(\S+)", lambda found: shlex.quote((ROOT / found[1]).read_text(encoding="utf-8")), command)
    service, operation, arguments = asked(command)
    if open_ := [name for name, value in arguments.items() if value is UNREAD]:
        raise ValueError(f"{command}: what is {', '.join(open_)}?")
    return getattr(boto3.client(service), xform_name(operation))(**arguments)


def asked(command: str) -> Asked:
    """What a command asks for. Raises ValueError for what the program would refuse."""
    _, name, verb, *words = shlex.split(command)
    service = _SERVICES.get(name, name)
    model = _session().get_service_model(service)
    operation = next((each for each in model.operation_names if xform_name(each, "-") == verb), None)
    if operation is None:
        raise ValueError(f"{service} has no {verb}")
    shape = model.operation_model(operation).input_shape
    members = {xform_name(each, "-"): each for each in shape.members} if shape else {}
    arguments: dict[str, Any] = {}
    positional = 0
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            positional += 1
            continue
        option, values = word[2:], list[str]()
        while words and not words[0].startswith("--") and (option not in members or _takes_more(shape, members[option], values)):
            values.append(words.pop(0))
        if option in _OF_ALL:
            continue
        member = _RENAMED.get((service, option)) or members.get(option)
        if member is None and option.startswith("no-") and option[3:] in members and not values:
            arguments[members[option[3:]]] = False
            continue
        if member is None:
            raise ValueError(f"{service} {verb} has no --{option}")
        is_named = _is_elsewhere(values) and values[0] not in getattr(shape.members[member], "enum", ())
        arguments[member] = UNREAD if is_named else _value(shape.members[member], values)
    if positional != _POSITIONAL.get((service, operation), 0):
        raise ValueError(f"{service} {verb} takes no {positional} words")
    if missing := set(shape.required_members if shape else ()) - arguments.keys():
        raise ValueError(f"{service} {verb} lacks {', '.join(sorted(missing))}")
    for member, value in arguments.items():
        report = ParamValidator().validate(value, shape.members[member])
        if value is not UNREAD and report.has_errors():
            raise ValueError(report.generate_report())
        if value is not UNREAD:
            _demand_known(shape.members[member], value)
    return Asked(service, operation, arguments)


def _demand_known(shape: Any, value: Any) -> None:
    """Raises ValueError for a word where the service knows only others, which botocore lets pass."""
    if shape.type_name == "list":
        for each in value:
            _demand_known(shape.member, each)
    elif shape.type_name == "structure":
        for name, each in value.items():
            _demand_known(shape.members[name], each)
    elif getattr(shape, "enum", ()) and value not in shape.enum:
        raise ValueError(f"{shape.name} is none of {', '.join(shape.enum)}: {value}")


def _takes_more(shape: Any, member: str, values: list[str]) -> bool:
    """A list takes all words up to the next option, everything else one, a boolean none."""
    kind = shape.members[member].type_name
    return kind == "list" or (kind != "boolean" and not values)


def _value(shape: Any, words: list[str]) -> Any:
    kind = shape.type_name
    if kind == "boolean":
        return True
    if not words:
        raise ValueError(f"{shape.name} lacks a value")
    if kind in _NUMBERS:
        return _NUMBERS[kind](words[0])
    if kind == "blob":
        return words[0].encode()
    if kind not in ("list", "structure", "map"):
        return words[0]
    if words[0][0] in "[{":
        return json.loads(words[0])
    if kind == "list":
        return [_short(shape.member, word) for word in words]
    return _short(shape, words[0])


def _short(shape: Any, word: str) -> Any:
    """What is written as Name=value,Name=value."""
    if shape.type_name not in ("structure", "map"):
        return word
    found: dict[str, Any] = {}
    last = ""
    for part in word.split(","):
        name, sign, text = part.partition("=")
        if sign:
            last = name
            found[name] = [text]
        else:
            found[last].append(name)
    members = shape.members if shape.type_name == "structure" else dict.fromkeys(found, shape.value)
    return {name: _plain(members[name], texts) if name in members else texts for name, texts in found.items()}


def _plain(shape: Any, texts: list[str]) -> Any:
    if shape.type_name == "list":
        return texts
    (text,) = texts
    if shape.type_name == "boolean":
        return {"true": True, "false": False}[text]
    return _NUMBERS[shape.type_name](text) if shape.type_name in _NUMBERS else text


def _is_elsewhere(words: list[str]) -> bool:
    return bool(words) and re.match(r"fileb?://|\$|[A-Z_]+$", words[0]) is not None


@cache
def _session() -> Any:
    return botocore.session.get_session()
