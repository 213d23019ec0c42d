"""axe-core: what in a page people with a screen reader, or without a mouse, stumble over. https://github.com/dequelabs/axe-core"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from infra.local.keeper import NODES_FOLDER, installing, npm_unpack
from tests.support.browser import Browser

AXE_VERSION = "4.14.1"
_RUN = """(async () => {
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations.filter(each => ['serious', 'critical'].includes(each.impact)).map(each => ({
    id: each.id, help: each.help,
    nodes: each.nodes.slice(0, 5).map(node => node.html.slice(0, 300) + " | " + node.failureSummary) }));
})()"""


@lru_cache(maxsize=1)
def _source() -> str:
    """axe-core's program, from npm's archive, unpacked beside the nodes once. Raises NodeMissing."""
    own = NODES_FOLDER / f"axe-{AXE_VERSION}"
    program = own / "package" / "axe.min.js"
    with installing(NODES_FOLDER):
        if not program.is_file():
            own.mkdir(exist_ok=True)
            npm_unpack(own, f"axe-core@{AXE_VERSION}")
    return Path(program).read_text()


def axe(page: Browser) -> list[dict[str, Any]]:
    """Serious and critical findings in the page as it is now: `[]` is what a test wants."""
    page.run(f"{_source()}; 'axe' in window")
    found: list[dict[str, Any]] = page.run(_RUN)
    return found
