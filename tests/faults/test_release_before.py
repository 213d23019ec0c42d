"""This version beside the release before it, over the same tables and queues: each deploy has both at work, and so has a rollback.

`BESIDE` names another tag or commit of the repository to play with, as in
`BESIDE=0.1.0 pytest tests/faults/test_release_before.py`. As long as no release is tagged it is what is committed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.archive import AFTER_DAYS
from tests.support.cuts import WAYS, Cutter, How, When, install
from tests.support.receiver import Receiver
from tests.support.side_by_side import ALL_PATHS, MIXED, ROLLED_BACK, UPGRADED, Beside, cut_in_turn, go, go_cut
from tests.support.stack import Stack
from tests.support.versions import ROOT, BothVersions, Version, copy_of_tree, release_before

EACH = 20
"""One in so many calls is cut in each way, others in each run: a fifth of them in one way or another."""
CHECKED = {("deposit", MIXED), ("withdrawal", ROLLED_BACK), ("collection", UPGRADED)}
"""What each check plays; the rest is of the sweep."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a clone has other versions"),
]


def beside() -> str:
    return os.environ.get("BESIDE") or release_before() or "HEAD"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """The version that is at work beside this one."""
    root = tmp_path_factory.mktemp("before")
    copy_of_tree(beside(), root)
    return Version(root)


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


@pytest.mark.parametrize(
    ("path", "way"),
    [
        pytest.param(path, way, marks=() if (path, way) in CHECKED else pytest.mark.sweep)
        for path in sorted(ALL_PATHS)
        for way in (MIXED, ROLLED_BACK, UPGRADED)
    ],
)
def test_it_works_beside_the_release_before(
    path: str, way: str, stack: Stack, receiver: Receiver, before: Version, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVE_AFTER_DAYS", str(AFTER_DAYS))
    world = Beside(BothVersions(stack, before, random.Random(f"{path} {way}")), Cutter())
    go(world, path, way, receiver)
    assert min(world.both.calls.values()) >= 5
    assert before.root != ROOT


@pytest.mark.sweep
@pytest.mark.parametrize(("how", "when"), WAYS)
@pytest.mark.parametrize("path", sorted(ALL_PATHS))
def test_any_call_of_either_may_fail(
    stack: Stack,
    receiver: Receiver,
    before: Version,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    testrun_uid: str,
    path: str,
    how: How,
    when: When,
) -> None:
    if beside() == "HEAD":
        pytest.skip("no release is tagged, and this version beside itself is played with additions (test_two_versions.py)")
    monkeypatch.setenv("ARCHIVE_AFTER_DAYS", str(AFTER_DAYS))
    cutter = Cutter()
    install(cutter, monkeypatch)
    cuts = cut_in_turn(path, (how, when), EACH, testrun_uid, lambda cut: go_cut(cut, stack, before, cutter, receiver))
    record_property("cut_points", cuts)
    assert cuts > 10 or os.environ.get("CUT_AT")


def test_a_tag_is_loaded_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest release below the commit that is not its own; its files, not those that are there now."""
    repository, out = tmp_path / "repository", tmp_path / "out"
    out.mkdir()
    (repository / "chalicelib").mkdir(parents=True)
    monkeypatch.setattr("tests.support.versions.ROOT", repository)

    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@shop.example", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]
        subprocess.run(["git", *who, *words], cwd=repository, check=True, capture_output=True)

    git("init", "-q")
    for release in ("0.9.0", "0.10.0", "0.11.0"):
        (repository / "app.py").write_text(f"RELEASE = {release!r}\n")
        (repository / "chalicelib" / "__init__.py").write_text("")
        git("add", ".")
        git("commit", "-q", "-m", release)
        if release != "0.11.0":
            assert release_before() == (None if release == "0.9.0" else "0.9.0")
        git("tag", "-a", release, "-m", release)
    assert release_before() == "0.10.0"
    copy_of_tree("0.10.0", out)
    assert (out / "app.py").read_text() == "RELEASE = '0.10.0'\n"
    assert (out / "chalicelib" / "__init__.py").exists()
    for none in ("0.12.0", "--output=stolen", "HEAD:chalicelib"):
        with pytest.raises(ValueError, match="git has no such tree"):
            copy_of_tree(none, out)


def test_its_modules_are_its_own(before: Version, stack: Stack) -> None:
    with before.active():
        files = {
            name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items() if name.startswith("chalicelib.")
        }
    assert len(files) > 50
    assert [name for name, file in files.items() if file and not Path(file).is_relative_to(before.root)] == []
