"""What bitcoin's and litecoin's node can do for tests and the local stack: mine, pay, reorganise, spend twice.

Both speak Bitcoin Core's JSON-RPC, with a wallet that has coins: the customer's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from chalicelib.chains.rpc import RpcError
from chalicelib.encoding.public_keys import p2wpkh_address, spelling
from chalicelib.usecases.ports.failures import Unavailable
from infra.local.keeper import Kept

UNITS = 10**8
"""Units of a coin: satoshi of a bitcoin, photons of a litecoin."""


def units_of(coins: Any) -> int:
    """A node's amount, a JSON number of coins, in units."""
    return int((Decimal(str(coins)) * UNITS).to_integral_value())


def coins_of(units: int) -> str:
    """Units as the nodes take amounts."""
    return f"{Decimal(units) / UNITS:.8f}"


class UtxoNode(Kept):
    """One node in regtest, with mature coins in its wallet. Amounts are units."""

    slug: str
    _miner: threading.Thread | None = None

    @property
    def height(self) -> int:
        return int(self.rpc.call("getblockcount"))

    def new_address(self) -> str:
        """An address of the customer that was never used before."""
        return str(self.rpc.call("getnewaddress"))

    def mine(self, count: int = 1) -> list[str]:
        """Mine `count` blocks with what is in the mempool; their hashes."""
        return list(self.rpc.call("generatetoaddress", [count, self._stranger()]))

    def mine_block(self, raw: Sequence[str] = ()) -> str:
        """Mine one block of these raw transactions alone, whatever the mempool has; its hash."""
        return str(self.rpc.call("generateblock", [self._stranger(), list(raw)])["hash"])

    def send(self, address: str, units: int) -> str:
        """Pay from the customer's coins; the transaction's id. It waits in the mempool."""
        return str(self.rpc.call("sendtoaddress", [address, coins_of(units)]))

    def raw(self, txid: str) -> str:
        """A transaction of the mempool or the chain, in hexadecimal digits."""
        return str(self.rpc.call("getrawtransaction", [txid]))

    def mempool(self) -> list[str]:
        """The ids of what waits there."""
        return list(self.rpc.call("getrawmempool"))

    def conflict(self, txid: str, address: str | None = None, fee_factor: int = 4) -> str:
        """A signed transaction, not sent, that spends the inputs of the customer's `txid` again, with `fee_factor` times its fee.

        Everything goes to `address`, or back to the customer. In hexadecimal digits.
        """
        first = self.rpc.call("getrawtransaction", [txid, True])
        spent = 0
        for entry in first["vin"]:
            before = self.rpc.call("getrawtransaction", [entry["txid"], True])
            spent += units_of(before["vout"][entry["vout"]]["value"])
        fee = spent - sum(units_of(out["value"]) for out in first["vout"])
        inputs = [(entry["txid"], entry["vout"]) for entry in first["vin"]]
        return self.signed(inputs, {address or self.new_address(): spent - fee_factor * fee})

    def signed(self, inputs: Sequence[tuple[str, int]], outputs: Mapping[str, int], sequence: int = 0xFFFFFFFD) -> str:
        """A transaction of these outputs of the customer (txid, index), not sent, in hexadecimal digits; what is left is the fee.

        The `sequence` of all inputs signals that it may be replaced (BIP-125), unless another one is given. Raises ValueError.
        """
        spent = [{"txid": txid, "vout": index, "sequence": sequence} for txid, index in inputs]
        unsigned = self.rpc.call("createrawtransaction", [spent, {address: coins_of(units) for address, units in outputs.items()}])
        signed = self.rpc.call("signrawtransactionwithwallet", [unsigned])
        if not signed["complete"]:
            raise ValueError("not all of these outputs are there and the customer's")
        return str(signed["hex"])

    def reorg(self, depth: int, *, remine: bool = False, instead: Sequence[str] = ()) -> list[str]:
        """Replace the last `depth` blocks by a branch of `depth` + 1; the hashes of the new blocks.

        The transactions of the old blocks wait in the mempool again (never their coinbases), or are in the first new block with
        `remine`. Else `instead` are raw transactions for that first block; what conflicts with them is gone for good.
        """
        self.rpc.call("invalidateblock", [self.rpc.call("getblockhash", [self.height - depth + 1])])
        first = self.rpc.call("generatetoaddress", [1, self._stranger()]) if remine else [self.mine_block(instead)]
        return [*first, *(self.mine_block() for _ in range(depth))]

    def mine_every(self, seconds: float) -> None:
        """Mine by itself from now on, until it is stopped."""
        self._stopping = threading.Event()

        def run() -> None:
            while not self._stopping.wait(seconds):
                try:
                    self.mine()
                except (RpcError, Unavailable):
                    # Busy, or mining for somebody else at this moment: the next turn comes.
                    continue

        self._miner = threading.Thread(target=run, name=f"{self.slug} miner", daemon=True)
        self._miner.start()

    def end(self) -> None:
        """Ask it to end, and do not wait: `stop` does. Safe to call twice."""
        if self._miner is not None:
            self._stopping.set()
        super().end()

    def stop(self) -> None:
        """End it and wait until it is gone. Safe to call twice."""
        super().stop()
        # After the node: a request of the miner's ends with it, and would be waited for otherwise.
        if self._miner is not None:
            self._miner.join(timeout=20)
            self._miner = None

    def _stranger(self) -> str:
        """An address that is nobody's, new each time: the customer's coins are all from the first blocks, so that none of them is
        immature again after a reorganisation; and an empty block to the same address in the same second would be the one that was
        invalidated."""
        return p2wpkh_address(spelling(self.slug, "regtest").segwit, os.urandom(33))
