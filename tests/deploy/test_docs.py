"""The pages name files, headings and packages that exist, and all of them together stay short enough to be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chalicelib.domain.webhooks.events import EVENT_NAMES
from tests.deploy.named_files import ROOT, exists

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "|".join(
    ["tests", "infra", "docs", "chalicelib", *sorted(path.name for path in (ROOT / "chalicelib").iterdir() if path.is_dir())]
)
NAMED = re.compile(rf"(?<![\w/.:…}}-])((?:{FOLDERS})/[\w./*-]*[\w*]|[\w*]+\.(?:py|md|yaml))(?![\w(])")
"""A path from one of our folders, with or without its suffix, or a file's bare name."""
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def anchors(page: Path) -> set[str]:
    """The anchors that a reader's browser makes of the headings of `page`."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def top_level(requirements: str) -> set[str]:
    """The packages that `requirements` pins for themselves: those above the line `# what those need`."""
    text = (ROOT / requirements).read_text(encoding="utf-8").partition("# what those need")[0]
    return set(re.findall(r"^(\w[\w-]*)", text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_a_page_exist(page: Path) -> None:
    named = NAMED.findall(page.read_text(encoding="utf-8"))
    assert [name for name in dict.fromkeys(named) if not exists(name)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_names_are_compared() -> None:
    text = "`usecases/base/outbox`, (api/edge.py) GET /api/openapi/ https://x/tests/y, `app.py`, tests/bench/bench_*.py"
    assert NAMED.findall(text) == [
        "usecases/base/outbox", "api/edge.py", "app.py", "tests/bench/bench_*.py",
    ]  # fmt: skip
    assert exists("usecases/base/outbox") and exists("app.py") and exists("tests/bench/bench_*.py")
    assert exists("usecases/base/outbox.tell") and not exists("usecases/base/out.tell")
    assert not exists("usecases/base/out") and not exists("apps.py")


def test_every_page_is_listed_in_the_table_of_pages() -> None:
    listed = {target for target, _ in LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))}
    assert {page.name for page in PAGES if page.parent == ROOT / "docs"} - {"README.md"} <= listed


def test_every_dependency_has_its_reason() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Dependencies")[2]
    rows = re.findall(r"^\| ([\w, -]+) \| (.+) \|$", table, re.MULTILINE)
    reasons = {package: reason for packages, reason in rows for package in packages.split(", ") if package != "package"}
    every = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("requirements.txt", "requirements-dev.txt"))
    pinned = set(re.findall(r"^([\w-]+)(?:\[[\w,]+\])?==", every, re.MULTILINE))
    assert (top_level("requirements.txt") | top_level("requirements-dev.txt")) - reasons.keys() == set()
    assert reasons.keys() - pinned == set()


def test_every_event_is_explained_to_merchants() -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8").partition("\n## Events\n")[2]
    assert [name for name in EVENT_NAMES if f"`{name}`" not in page] == []


def test_the_pages_stay_short() -> None:
    """Words as `wc -w README.md docs/*.md` counts them: what stands between blanks, those that do not break a line included.

    What a first deploy asks for, and what a real account alone can prove, have room of their own.
    """
    counted = [page for page in PAGES if page.name != "CONTRIBUTING.md"]
    words = {str(page.relative_to(ROOT)): len(page.read_text(encoding="utf-8").split()) for page in counted}
    first = {"docs/deploying.md", "docs/aws.md"}
    assert sum(count for page, count in words.items() if page not in first) <= 22_000, words
    assert sum(count for page, count in words.items() if page in first) <= 3_100, words
