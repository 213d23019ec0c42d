"""The deployment package: what Chalice packs, less what no function reads, with every module compiled.

Chalice packs all of each wheel. Three quarters of botocore are descriptions of services that we never call, and bitcoinlib brings
its tests and a database layer. Lambda takes a package of 50 MB directly, and starts a function sooner with a smaller one.

/var/task is read-only: a module without its compiled form would be compiled again at every cold start, which doubles the CPU time
of the imports. The compiled form names its source's hash and is never checked against it (PEP 552), since the files in a package do
not change and their times are lost on the way.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
"""

from __future__ import annotations

import importlib.util
import marshal
import re
from fnmatch import fnmatchcase
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from infra.commands.common import CanNot
from infra.lambda_platform import MACHINES, RUNNING

SERVICES = frozenset({"dynamodb", "kms", "s3", "secretsmanager", "sqs", "ssm", "sts"})
"""The AWS services that functions call; botocore's descriptions of the others stay out. A test compares it with the code."""

LEFT_OUT = {
    "tests/*": "bitcoinlib's tests lie beside its package, with blocks of several MB",
    "sqlalchemy/*": "for bitcoinlib's wallets; without it bitcoinlib imports neither them nor makes a database",
    "sqlalchemy-*": "its metadata",
    "*.c": "sources of compiled modules",
    "*.h": "sources of compiled modules",
    "*.pyc": "compiled on this machine, of modules that happened to be imported here",
}
"""Patterns of files in the package that no function reads, and why they were packed at all."""

_DATA = "botocore/data/"
_UNPACKED = "/var/task"  # where Lambda puts the package: tracebacks name files there
_UNCHECKED_HASH = (1).to_bytes(4, "little")  # PEP 552: bit 0 says that a hash follows, bit 1 that it is to be checked
_ELF = b"\x7fELF\x02\x01"  # 64 bits, the lowest byte first: Lambda's two architectures
_MACHINE = slice(18, 20)
_LIBRARY = re.compile(r"\.so(\.\d+)*$")
_FOR_PYTHON = re.compile(r"\.cpython-(\d+)-[^/]*$")


def is_packed(name: str) -> bool:
    """Whether the file `name` of a package that Chalice made belongs into ours."""
    service, inside, _ = name.removeprefix(_DATA).partition("/")
    if name.startswith(_DATA) and inside and service not in SERVICES:
        return False
    return not any(fnmatchcase(name, pattern) for pattern in LEFT_OUT)


def pack(whole: Path, target: Path, architecture: str = "x86_64") -> None:
    """Write to `target` what functions need of the zip file `whole`, with a compiled form of each module for this Python.

    The same `whole` makes the same bytes. `target` is there when it is complete, and not before. Raises CanNot for a library of
    another architecture or Python, OSError; SyntaxError for a module that this Python does not compile.
    """
    begun = target.with_suffix(".begun")
    with ZipFile(whole) as source, ZipFile(begun, "w", ZIP_DEFLATED) as out:
        for entry in sorted(source.infolist(), key=lambda entry: entry.filename):
            if entry.is_dir() or not is_packed(entry.filename):
                continue
            content = source.read(entry)
            if problem := misfit(entry.filename, content, architecture):
                raise CanNot(f"{entry.filename} can not be deployed: {problem}")
            _add(out, entry.filename, content)
            if entry.filename.endswith(".py"):
                _add(out, importlib.util.cache_from_source(entry.filename), _compiled(entry.filename, content))
    begun.replace(target)


def misfit(name: str, content: bytes, architecture: str) -> str | None:
    """Why a function of this architecture can not load the compiled library `content`; None where it can, or it is none."""
    if not content.startswith(_ELF):
        return "it is no library of Linux for 64 bits" if _LIBRARY.search(name) or content.startswith(_ELF[:4]) else None
    machine = int.from_bytes(content[_MACHINE], "little")
    if machine != MACHINES[architecture]:
        known = next((name for name, number in MACHINES.items() if number == machine), f"machine {machine}")
        return f"it is for {known}, and functions run on {architecture}"
    made_for = _FOR_PYTHON.search(name)
    if made_for and f"python{made_for[1][0]}.{made_for[1][1:]}" != RUNNING:
        return f"it is for Python {made_for[1][0]}.{made_for[1][1:]}, and functions run {RUNNING}"
    return None


def _add(out: ZipFile, name: str, content: bytes) -> None:
    entry = ZipInfo(name)  # of 1980, always: times are no reason to deploy other bytes
    entry.external_attr = 0o100644 << 16  # Lambda's user has to read what this machine's umask may have shut
    out.writestr(entry, content, ZIP_DEFLATED)


def _compiled(name: str, content: bytes) -> bytes:
    """The bytes of a `.pyc` file with an unchecked hash. https://peps.python.org/pep-0552/"""
    code = compile(content, f"{_UNPACKED}/{name}", "exec", dont_inherit=True)
    return importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + importlib.util.source_hash(content) + marshal.dumps(code)
