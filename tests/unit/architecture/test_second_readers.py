"""The second readers' libraries are heavy: functions that sign load them at their first signature, nothing else ever does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = {
    "web3", "eth_account", "eth_keys", "eth_utils", "eth_abi", "eth_hash", "hexbytes", "bitcoinlib", "fastecdsa", "ecdsa",
    "sqlalchemy", "tronpy", "google",
}  # fmt: skip
MAY = {f"chains/{family}/second_reader.py" for family in ("evm", "utxo", "tron")} | {"chains/tron/schema.py"}
SIGN = {f"wiring/{module}.py" for module in ("payouts", "moves", "stakes", "coin_moves")}


def imported(tree: ast.AST) -> set[str]:
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return names | {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def modules() -> dict[str, str]:
    folder = ROOT / "chalicelib"
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.py")}


def test_only_second_readers_import_the_libraries_and_only_when_called() -> None:
    found = set()
    named = re.compile(rf"\b(?:{'|'.join(sorted(LIBRARIES))})\b")
    for name, text in modules().items():
        if not named.search(text):
            continue  # what is not named is not imported: a parse of every module takes two seconds
        tree = ast.parse(text)
        if LIBRARIES & {module.partition(".")[0] for module in imported(tree)}:
            found.add(name)
        at_once = [node for node in tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        methods = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        bodies = [*at_once, *(node for cls in methods for node in cls.body if not isinstance(node, ast.FunctionDef))]
        loaded = {module.partition(".")[0] for body in bodies for module in imported(body)}
        assert not LIBRARIES & loaded, name
    assert {"chains/evm/second_reader.py", "chains/utxo/second_reader.py"} <= found
    assert found <= MAY


def test_only_what_signs_asks_for_a_second_reader() -> None:
    texts = modules()
    readers = {"chalicelib." + name.removesuffix(".py").replace("/", ".") for name in MAY if name.endswith("second_reader.py")}
    makes = {name for name, text in texts.items() if "second_reader" in text and readers & imported(ast.parse(text))}
    assert makes == {"wiring/second_readers.py"}
    asks = {name for name, text in texts.items() if re.search(r"\.second_readers\.\w", text)}
    assert {"wiring/payouts.py", "wiring/moves.py", "wiring/coin_moves.py"} <= asks <= SIGN


def test_a_second_reader_loads_its_library_when_it_is_asked() -> None:
    program = f"""
import sys
from chalicelib import wiring
from chalicelib.domain.catalogue.catalogue import default_networks
import chalicelib.usecases.payouts.bundle_payouts, chalicelib.usecases.treasury.consolidation.signing
import chalicelib.usecases.payouts.account_payouts, chalicelib.usecases.treasury.moves.signing
readers = wiring.services().wiring.chains.second_readers
for network in default_networks("live"):
    readers.coins(network) if network.family == "utxo" else readers.accounts(network)
print(sorted({LIBRARIES!r} & set(sys.modules)))
"""
    environment = {"STAGE": "local", "AWS_DEFAULT_REGION": "eu-central-1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
