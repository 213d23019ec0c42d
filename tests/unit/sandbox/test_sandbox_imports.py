"""What the API loads to speak to the simulated networks: nothing heavy."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
import chalicelib.usecases.sandbox.sandbox
import chalicelib.chains.sandbox.chain, chalicelib.chains.sandbox.reader, chalicelib.chains.sandbox.payer
print(",".join(sorted({name.split(".")[0] for name in sys.modules})))
"""


def test_the_simulated_networks_load_no_chain_library_and_no_curve() -> None:
    loaded = set(
        subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True).stdout.strip().split(",")
    )
    assert "chalicelib" in loaded
    assert not loaded & {"web3", "eth_account", "tronpy", "bitcoinlib", "coincurve", "pynamodb", "pydantic", "cryptography"}
