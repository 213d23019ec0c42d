"""The files of the pages: flat names with a hash, and imports by these names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chalicelib.web import files

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Puts files into a folder in the place of ours."""
    monkeypatch.setattr(files, "STATIC", tmp_path)
    monkeypatch.setattr(files, "_made", {})
    files.index.cache_clear()

    def put(**content: str) -> None:
        for name, text in content.items():
            path = tmp_path / name.replace("__", "/").replace("_js", ".js")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        files._made.clear()
        files.index.cache_clear()

    yield put
    files.index.cache_clear()


def test_a_name_changes_with_what_is_imported(write: Write) -> None:
    write(app__a_js='import { b } from "./b.js";', app__b_js='import c from "../lib/c.js";', lib__c_js="export default 1;")
    before = {path: files.named(path) for path in ("app/a.js", "app/b.js", "lib/c.js")}
    assert f'"./{before["lib/c.js"]}"' in files.file("app/b.js").text
    write(lib__c_js="export default 2;")
    assert all(files.named(path) != name for path, name in before.items())
    assert files.by_name(before["app/a.js"]) is None
    assert files.file("app/a.js").name.startswith("app-a.")


def test_all_ways_to_import_are_understood(write: Write) -> None:
    write(
        a_js="import'./b.js';export{c}from'./c.js';const d=import( './d.js' );import {x} from 'preact';const e=import('./e.js');",
        b_js="", c_js="", d_js="", e_js="", lib__preact_js="",
    )  # fmt: skip
    text = files.file("a.js").text
    assert [re.sub(r"\.[0-9a-f]{12}", "", found) for found in re.findall(r"\./[\w.-]+", text)] == [
        "./b.js", "./c.js", "./d.js", "./lib-preact.js", "./e.js",
    ]  # fmt: skip
    # What is loaded later is not loaded beforehand.
    assert [name.partition(".")[0] for name in files.needed("a.js")] == ["a", "b", "c", "lib-preact"]


def test_a_cycle_and_a_missing_module_are_refused(write: Write) -> None:
    write(a_js='import "./b.js";', b_js='import "./c.js";', c_js='const later = () => import("./a.js");', d_js='import "./e.js";')
    with pytest.raises(ValueError, match=re.escape("a.js → b.js → c.js → a.js")):
        files.file("a.js")
    with pytest.raises(ValueError, match=re.escape("d.js imports ./e.js, which is no file")):
        files.file("d.js")


@pytest.mark.parametrize("specifier", ["../../secret.js", "./../../../etc/passwd.js", "./app/../../x.js"])
def test_an_import_stays_inside(write: Write, specifier: str) -> None:
    write(app__a_js=f'import "{specifier}";')
    with pytest.raises(ValueError, match="which is no file"):
        files.file("app/a.js")


def test_two_files_never_have_one_name(write: Write) -> None:
    write(**{"app__a_js": "", "app-a_js": ""})
    with pytest.raises(ValueError, match="one name"):
        files.index()


@pytest.mark.parametrize(
    "name",
    ["", "a.js", "app/a.js", "app-a.js", "app-a.000000000000.js", "../a.js", "a.000000000000.js/..", "A.000000000000.js",
     "a.00000000000g.js", "a.000000000000.py", "\x00", "%2e%2e", "a" * 300 + ".000000000000.js", "a.000000000000.js\n"],
)  # fmt: skip
def test_no_other_name_has_a_file(write: Write, name: str) -> None:
    write(a_js="", app__a_js="")
    assert files.by_name(name) is None


def test_one_file_reads_only_what_it_imports(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(a_js='import "./b.js";', b_js="", c_js="", d_js="")
    name = files.named("a.js")
    files._made.clear()
    read: list[str] = []
    plain = files._text
    monkeypatch.setattr(files, "_text", lambda path: read.append(path) or plain(path))
    assert files.by_name(name) is not None
    assert read == ["a.js", "b.js"]
    assert files.by_name(name) is not None and len(read) == 2, "once per process"


def test_every_import_of_our_own_files_is_one() -> None:
    for plain, file in files.files().items():
        if plain.startswith("swagger-"):
            continue
        assert not re.search(r"""(from|import)\s*\(?["'](\.\./|[a-z])""", file.text) or not plain.endswith(".js"), plain
        assert plain.startswith("lib-") or not re.search(r"innerHTML\s*=[^=]", file.text), f"{plain}: text must never become markup"
        # The explorer clears what Swagger UI has kept in localStorage. A style that is an object is set by script: the policy
        # allows that.
        if not plain.startswith(("lib-", "explorer.")) and plain.endswith(".js"):
            assert not re.search(
                r"localStorage|document\.write|outerHTML|insertAdjacentHTML|\beval\(|\sstyle=(?!\$\{\{)", file.text
            ), plain
            assert file.text.startswith(("//", "/*")), f"{plain}: its first line says what it is for"


def test_the_local_stack_reads_again_what_was_changed(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(a_js="1;")
    monkeypatch.setattr(files, "_newest", [0])
    files.read_again()
    before = files.named("a.js")
    (files.STATIC / "a.js").write_text("2;")
    assert files.named("a.js") == before, "once per process, where nobody is at work on it"
    os.utime(files.STATIC / "a.js", (2_000_000_000, 2_000_000_000))
    files.read_again()
    assert files.named("a.js") != before


_NAMED = re.compile(r"import\s*\{([^}]*)\}\s*from\s*[\"']([^\"']+)[\"']")
_EXPORTED = re.compile(r"^export (?:async )?(?:function\*?|const|class|let) (\w+)", re.MULTILINE)
TESTS = Path(__file__).parents[2]


def ours() -> dict[str, str]:
    """Our modules by their paths, without those of others."""
    paths = [path for path in files.index().values() if path.endswith(".js") and not path.startswith(("lib/", "swagger-"))]
    return {path: (files.STATIC / path).read_text("utf-8") for path in paths}


def test_what_is_imported_is_used_and_what_is_exported_is_imported() -> None:
    """An export that only a test reads is allowed: it is tested by itself."""
    modules = ours()
    imported: set[tuple[str, str]] = set()
    unused = []
    for path, text in modules.items():
        for names, source in _NAMED.findall(text):
            wanted = os.path.normpath(Path(path).parent / source)
            for name in filter(None, (each.strip() for each in names.split(","))):
                own = name.rpartition(" as ")[2]
                imported.add((wanted, name.partition(" as ")[0]))
                if len(re.findall(rf"\b{own}\b", text)) < 2:
                    unused.append(f"{path} imports {own}")
    whole = {
        os.path.normpath(Path(path).parent / each)
        for path, text in modules.items()
        for each in re.findall(r"\* as \w+ from \"([^\"]+)\"", text)
    }
    told = "\n".join(
        test.read_text("utf-8") for folder in ("unit/web", "browser", "bench") for test in (TESTS / folder).glob("*.py")
    )
    for path, text in modules.items():
        for name in _EXPORTED.findall(text) if path not in whole else ():
            if (path, name) not in imported and not re.search(rf"\b{name}\b", told):
                unused.append(f"{path} exports {name}")
    assert not unused, "\n".join(unused)


_LAYERS = {"lib": 0, "app": 1, "catalogue": 2, "portal": 4, "console": 4}
"""Folders of modules, the lowest first. All others are capabilities, and lie between the catalogue and the two single pages."""
_CAPABILITY = 3
_SHARED_CAPABILITIES = {
    "addresses": {"transactions"},
    "events": {"webhooks"},
    "invoices": {"transactions"},
    "payment_links": {"invoices"},
    "refunds": {"withdrawals"},
    "signers": {"signing"},
    "whitelist": {"signing"},
    "withdrawals": {"payouts", "signing"},
}
"""What one capability takes from another. Each new pair is a decision."""


def test_imports_of_folders_point_downwards() -> None:
    """Portal and console stand on the capabilities, these on the catalogue, `app` and `lib`. The checkout stands alone: a payer
    loads nothing of the rest."""
    pairs: set[tuple[str, str]] = set()
    for path, text in ours().items():
        for match in files._IMPORT.finditer(text):
            wanted = files._imported(path, match[3])
            if wanted is not None:
                pairs.add((path.rpartition("/")[0], wanted.rpartition("/")[0]))
    assert ("console", "app") in pairs and ("portal", "invoices") in pairs
    between = {(own, other) for own, other in pairs if own != other}

    def layer(folder: str) -> int:
        return _LAYERS.get(folder, _CAPABILITY)

    alone = {pair for pair in between if "checkout" in pair}
    shared = {(own, other) for own, others in _SHARED_CAPABILITIES.items() for other in others}
    wrong = {pair for pair in between - shared if layer(pair[0]) <= layer(pair[1])} | alone
    assert not wrong, "upwards or sideways: " + ", ".join(f"{own} imports {other}" for own, other in sorted(wrong))
    assert shared <= between, f"no longer needed: {sorted(shared - between)}"


def test_no_line_of_a_module_is_too_long() -> None:
    long = [f"{path}:{at}" for path, text in ours().items() for at, line in enumerate(text.split("\n"), 1) if len(line) > 128]
    assert not long, ", ".join(long)
