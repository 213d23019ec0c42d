"""Blocks whose transactions all call a contract that sends a coin on, at a node that traces them by either method."""

from __future__ import annotations

from typing import Any

from tests.support.heavy_node import STRANGER, EvmBlocks, name_of

PAID = "0x" + "0b" * 20
"""Whom the contract of every transaction pays: the units are the block's number and the transaction's place in it."""
METHODS = {
    "debug_traceBlockByHash": "geth",
    "debug_traceTransaction": "geth",
    "trace_block": "parity",
    "trace_transaction": "parity",
}


class TracedBlocks(EvmBlocks):
    """`kind`: whose methods the node has. `padding`: bytes of input that each trace repeats."""

    def __init__(self, blocks: int, transactions: int, chain_id: int = 1, kind: str = "geth", padding: int = 0) -> None:
        super().__init__(blocks, transactions=transactions)
        self._chain_id, self._kind, self._padding = chain_id, kind, padding

    def told(self, method: str, params: Any) -> bytes:
        if method == "eth_chainId":
            return b'"0x%x"' % self._chain_id
        if method not in METHODS:
            return super().told(method, params)
        if METHODS[method] != self._kind:
            raise LookupError(method)
        rows = [self._trace(txid) for txid in self._named(method, params[0])]
        if method == "debug_traceTransaction":
            return rows[0].partition(b'"result":')[2].rpartition(b"}")[0]
        return b"[" + b",".join(rows) + b"]"

    def paid(self, number: int) -> list[int]:
        """The units that reach `PAID` in a block."""
        return [1_000 * number + place for place in range(self.transactions)]

    def _named(self, method: str, name: str) -> list[str]:
        if method.endswith("Transaction") or method == "trace_transaction":
            return [name]
        number = int(name, 16) if method == "trace_block" else self._of_hash[name]
        return [self._txid(number, place) for place in range(self.transactions)]

    def _trace(self, txid: str) -> bytes:
        number, place = int(txid[2:34], 16), int(txid[34:], 16)
        units, padding = 1_000 * number + place, "00" * self._padding
        contract = f"0x{number:020x}{place:020x}"
        if self._kind == "geth":
            call = f'{{"type":"CALL","from":"{contract}","to":"{PAID}","value":"{units:#x}","gas":"0x1","input":"0x{padding}"}}'
            whole = f'{{"type":"CALL","from":"{STRANGER}","to":"{contract}","value":"{units:#x}","input":"0x","calls":[{call}]}}'
            return f'{{"txHash":"{txid}","result":{whole}}}'.encode()
        return (
            f'{{"type":"call","blockHash":"{name_of(number)}","transactionHash":"{txid}","traceAddress":[0],"action":{{'
            f'"callType":"call","from":"{contract}","to":"{PAID}","value":"{units:#x}","input":"0x{padding}"}}}}'
        ).encode()

    def _block(self, number: int, full: bool) -> bytes:
        return super()._block(number, full).replace(b'"gas":"0x5208"', b'"gas":"0x30d40"')
