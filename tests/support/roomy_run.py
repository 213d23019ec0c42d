"""The local stack for tests of pages: `python -m tests.support.roomy_run`.

All tests of a process share its keys, so each may ask a hundred times as often as elsewhere. The limits have tests of their own.
"""

from __future__ import annotations

import dataclasses

from chalicelib.usecases.merchants import access
from infra.local.run import program

MORE = 100


def main() -> None:
    roomy = {kind: (minute * MORE, hour * MORE, day * MORE) for kind, (minute, hour, day) in access._LIMITS.items()}
    windows = {name: dataclasses.replace(each, limit=each.limit * MORE) for name, each in access.CLASS_WINDOWS.items()}
    access._LIMITS, access.CLASS_WINDOWS = roomy, windows
    program()


if __name__ == "__main__":
    main()
