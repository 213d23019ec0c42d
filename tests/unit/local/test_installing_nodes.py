"""Installing from Debian's archive: once, without root, and from lists of its own where the machine's are of no use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra.local.keeper import NodeMissing
from infra.local.litecoin import find_litecoind
from infra.local.php import find_php

# They behave as Debian's do, note how they were called, and bring a package that consists of one file.
APT_GET = """#!/bin/sh
echo "apt-get $*" >> {log}
case "$*" in
  *update*) touch {lists}; exit 0 ;;
  *simulate*) [ -e {lists} ] || {{ echo "E: Unable to locate package litecoind" >&2; exit 100; }}
    echo "Inst libfmt9 (9.1.0 Debian:12 [amd64])"; echo "Inst litecoind (0.21.2.1 Debian:12 [amd64])" ;;
  *download*) touch libfmt9.deb litecoind.deb ;;
esac
"""
DPKG = """#!/bin/sh
echo "dpkg $*" >> {log}
mkdir -p "$3/usr/lib/litecoin" "$3/usr/bin" && touch "$3/usr/lib/litecoin/litecoind" "$3/usr/bin/php8.2" "$3/usr/bin/php8.2.phar"
"""


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    for name, text in (("apt-get", APT_GET), ("dpkg", DPKG)):
        (programs / name).write_text(text.format(log=log, lists=tmp_path / "lists"))
        (programs / name).chmod(0o755)
    for tool in ("touch", "mkdir"):
        (programs / tool).symlink_to(Path("/bin") / tool)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("LITECOIND", raising=False)
    monkeypatch.delenv("PHP", raising=False)
    # Whatever this machine has installed.
    monkeypatch.setattr(Path, "is_file", lambda path: path.exists() and path.is_relative_to(tmp_path))
    return log


def test_the_machines_lists_are_enough_where_they_are_right(log: Path, tmp_path: Path) -> None:
    (tmp_path / "lists").touch()
    program = find_litecoind(tmp_path / "nodes")
    assert program == tmp_path / "nodes" / "litecoin" / "usr" / "lib" / "litecoin" / "litecoind"
    calls = log.read_text()
    assert "update" not in calls
    assert "download libfmt9 litecoind" in calls
    assert calls.count("dpkg -x") == 2
    assert list((tmp_path / "nodes").glob("*.part")) == []


def test_without_lists_they_are_fetched_into_a_folder_of_ours(log: Path, tmp_path: Path) -> None:
    assert find_litecoind(tmp_path / "nodes").exists()
    update = next(line for line in log.read_text().splitlines() if line.endswith("update"))
    assert f"Dir::State::lists={tmp_path}/nodes/" in update
    assert "Debug::NoLocking=1" in update


def test_it_is_installed_once_however_many_ask(log: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: find_litecoind(tmp_path / "nodes"), range(4)))
    assert len(set(found)) == 1
    assert log.read_text().count("dpkg -x") == 2


def test_an_archive_without_it_is_told_of(log: Path, tmp_path: Path) -> None:
    apt = tmp_path / "bin" / "apt-get"
    apt.write_text("#!/bin/sh\necho 'E: Unable to locate package litecoind' >&2\nexit 100\n")
    with pytest.raises(NodeMissing, match="Unable to locate package litecoind"):
        find_litecoind(tmp_path / "nodes")


def test_php_is_the_paths_the_named_one_or_debians(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, environment = find_php(tmp_path / "nodes")
    assert (program, environment) == (tmp_path / "nodes" / "php" / "usr" / "bin" / "php8.2", {})
    assert find_php(tmp_path / "nodes") == (program, environment)
    assert log.read_text().count("dpkg -x") == 2
    own = tmp_path / "bin" / "php"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert find_php(tmp_path / "elsewhere") == (own, {})
    monkeypatch.setenv("PHP", str(program))
    assert find_php(tmp_path / "elsewhere") == (program, {})
    monkeypatch.setenv("PHP", str(tmp_path / "none"))
    with pytest.raises(NodeMissing, match="names no file"):
        find_php()
