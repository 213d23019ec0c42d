"""Whether a file that a page names is there."""

from __future__ import annotations

import re

from infra.deploy import TEMPLATE

ROOT = TEMPLATE.parents[1]
DEFINED = re.compile(r"\.(?!(?:py|md|yaml|txt|json|jsonl|js|toml|sh)$)\w+$")


def exists(name: str) -> bool:
    """Whether `name` is a file or folder: from the root, from chalicelib or docs, or, for a bare name, anywhere in the project.

    Behind a module's path may stand what it defines: `usecases/deposits/deposits.detect`.
    """
    name = DEFINED.sub("", name)
    if "/" not in name:
        inside = any(next((ROOT / part).rglob(name), None) for part in ("chalicelib", "infra", "docs", "tests"))
        return inside or (ROOT / name).exists()
    return any(
        next(place.glob(name + suffix), None) for place in (ROOT, ROOT / "chalicelib", ROOT / "docs") for suffix in ("", ".py")
    )
