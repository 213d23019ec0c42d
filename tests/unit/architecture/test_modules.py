"""How the modules lie and import each other, beside the contracts of import-linter in `pyproject.toml`.

The graph has every import: those inside functions, and those for type checkers alone. Who reads one module of a cycle has to read
all of them, whenever they are loaded. import-linter's own contract asks this of packages, which is more: it is not used.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[3]
_IMPORTS_A_TEST = re.compile(r"(?:from|import)\b(?:[^\n\\]|\\\n)*\btest_|\bimport\s*\((?:#[^\n]*|[^)#])*\btest_")
"""What every import of a test module looks like, and little else: to parse all of the tests takes two seconds."""
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


def test_versions_wallets_and_address_forms_have_one_helper_each() -> None:
    """Written by hand at each place they drift apart."""
    helpers = {
        r"\.version \+ 1": ["domain/versions.py"],
        r"\bget\(WalletBalance,": [
            "usecases/deposits/posting.py",
            "usecases/reconciliation/utxo.py",
            "usecases/wallets/ledger_balances.py",
        ],
        r"\bget\(Wallet,|\(Wallet, \{": ["usecases/base/current_wallets.py"],
        # Of the grey list only the network's name is known.
        r"\.storage_form\(": ["usecases/base/address_forms.py", "usecases/screening/grey_list.py"],
    }
    product = ROOT / "chalicelib"
    sources = {str(file.relative_to(product)): file.read_text() for file in sorted(product.rglob("*.py"))}
    for pattern, allowed in helpers.items():
        found = [name for name, source in sources.items() if re.search(pattern, source)]
        assert found == allowed


def test_moves_are_made_by_their_named_constructors_alone() -> None:
    """Each fixes what may not vary within a kind: whose key signs, which coin, where it begins."""
    files = sorted((ROOT / "chalicelib").rglob("*.py"))
    # Most do not name it at all, and need not be parsed.
    naming = {file: source for file, source in ((file, file.read_text()) for file in files) if "Move" in source}
    assert naming
    made = [str(file.relative_to(ROOT)) for file, source in naming.items() if "Move" in _called(source)]
    assert made == []
    constructors = _called((ROOT / "chalicelib/domain/treasury/moves.py").read_text())
    assert "cls" in constructors


def test_every_way_to_call_a_class_is_found() -> None:
    """What the test above rests on."""
    assert [_called(way) for way in ("Move(id=1)", "moves.Move(1)", "Move.topup(1)")] == [{"Move"}, {"Move"}, {"topup"}]


def _called(source: str) -> set[str]:
    """The names that `source` calls, without what they belong to."""
    called = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {each.attr for each in called if isinstance(each, ast.Attribute)} | {
        each.id for each in called if isinstance(each, ast.Name)
    }


def test_no_test_module_imports_another_one() -> None:
    """What tests share lies in `tests/support`, in a helper beside them, or in a `conftest.py`."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert len(files) > 300
    found = [(str(file.relative_to(ROOT)), module) for file in files for module in _test_modules(file.read_text())]
    assert found == []


def test_every_way_to_import_a_test_module_is_found() -> None:
    """What the test above rests on. The third stands for the programs that tests start."""
    ways = (
        "from TESTS.unit.test_a import b",
        "from TESTS.unit import test_a as a",
        'PROGRAM = """\nfrom TESTS.unit.test_a import b\n"""',
        "import TESTS.unit.test_a",
        "from .test_a import b",
        "from . import test_a",
        r'PROGRAM = "pass\nfrom TESTS.unit.test_a import b"',
        "from TESTS.unit import (\n    a,\n    test_a,\n)",
        "from TESTS.unit import \\\n    test_a",
    )
    assert [len(_test_modules(way.replace("TESTS", "tests"))) for way in ways] == [1] * len(ways)
    assert _test_modules("from tests.support.shop import Shop\nfrom tests.unit.api import edge") == []


def _test_modules(source: str) -> list[str]:
    """The test modules that `source` imports, by whatever form; a name `test_…` from elsewhere counts too."""
    if not _IMPORTS_A_TEST.search(source):
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=module, names=names):
                found += [name for name in (f"{module or ''}.{each.name}" for each in names) if _is_of_tests(name)]
            case ast.Import(names=names):
                found += [each.name for each in names if each.name.startswith("tests.") and _is_of_tests(each.name)]
            case ast.Constant(value=str(text)):
                found += re.findall(r"^\s*(?:from|import) (tests\.[\w.]*\btest_\w+)", text, re.MULTILINE)
    return found


def _is_of_tests(name: str) -> bool:
    return any(part.startswith("test_") for part in name.split("."))


def test_no_class_is_made_of_more_than_eight_parts() -> None:
    """Ruff counts the arguments of functions (PLR0913), not the fields of a dataclass. Records may have as many as they need: their
    fields are values, and none of them is the store."""
    found: dict[str, int] = {}
    for file in sorted((ROOT / "chalicelib").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
                fields = [ast.unparse(each.annotation) for each in node.body if isinstance(each, ast.AnnAssign)]
                if "Store" in fields and len(fields) > 8:
                    found[node.name] = len(fields)
    assert found == {}
