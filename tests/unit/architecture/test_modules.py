"""How the product's modules lie and import each other, beside the contracts of import-linter in `pyproject.toml`.

The graph has every import: those inside functions, and those for type checkers alone. Who reads one module of a cycle has to read
all of them, whenever they are loaded. import-linter's own contract asks this of packages, which is more: it is not used.
"""

from __future__ import annotations

from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[3]
MOST_MODULES = 30
"""Of one folder: what a newcomer reads as one list."""


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("chalicelib", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 500
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the cycle


def test_the_graph_has_imports_inside_functions_and_for_type_checkers() -> None:
    """What the test above rests on."""
    graph = grimp.build_graph("chalicelib", cache_dir=None)
    assert "chalicelib.chains.tron.usage" in graph.find_modules_directly_imported_by("chalicelib.chains.tron.reader")
    assert "chalicelib.wiring" in graph.find_modules_directly_imported_by("chalicelib.api.context")


def test_no_folder_is_longer_than_a_list_that_is_read() -> None:
    sizes = Counter(file.parent.relative_to(ROOT) for file in (ROOT / "chalicelib").rglob("*.py") if file.name != "__init__.py")
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_MODULES} == {}
