"""Creations go one way: a use case prepares, the edge renders and commits. No use case calls back up into the edge."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3] / "chalicelib"
_GIVES_CHANGES = re.compile(r"Callable\[\[?[^\]]*\]?, .*\b(Change|Save)\b")


def test_no_use_case_takes_what_makes_more_changes() -> None:
    files = sorted((ROOT / "usecases").rglob("*.py"))
    assert len(files) > 100
    assert [(file.name, found) for file in files for found in _callbacks(file.read_text())] == []


def test_every_form_of_such_a_callback_is_found() -> None:
    """What the test above rests on."""
    forms = (
        "def create(self, also: X) -> None: ...",
        "def create(self, *, also=None): ...",
        "def create(self, more: Callable[[Invoice], Sequence[Change]]) -> None: ...",
        "def create(self, more: Callable[[Any], list[Save]] | None = None) -> None: ...",
        "More = Callable[[Any], Sequence[Change]]",
    )
    assert [len(list(_callbacks(form))) for form in forms] == [1] * len(forms)
    assert (
        list(_callbacks("def unheld(self, decide: Callable[[], T], on_conflict: Callable[[Conflict], T]) -> list[Change]: ..."))
        == []
    )


def test_the_edge_makes_no_creation_of_its_own() -> None:
    files = sorted((ROOT / "api").rglob("*.py"))
    assert len(files) > 50
    made = [(file.name, call) for file in files for call in re.findall(r"\b(?:Creation|Prepared)\(", file.read_text())]
    assert made == []


def _callbacks(source: str) -> Iterator[str]:
    """Parameters named `also`, and parameters and names of types for functions that give changes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.arg(arg=name, annotation=annotation):
                said = "" if annotation is None else ast.unparse(annotation)
                if name == "also" or _GIVES_CHANGES.search(said):
                    yield f"{name}: {said}"
            case ast.Assign(value=value) if _GIVES_CHANGES.search(ast.unparse(value)):
                yield ast.unparse(node)
