"""Many strangers at once on the grounds: hundreds of payments in a few blocks, of native coins and of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from infra.bootstrap import NodeInfo
from infra.local.nodes import UtxoNode, deploy_token, dev_account, mine
from infra.local.tokens import call_data
from tests.nodes.grounds import EvmGround, Ground, TronGround, UtxoGround

Payment = tuple[str, int]
"""Address and units."""
USDT_DECIMALS = 6


class Crowd:
    """What a crowd does on one network. `contract` is the token that it also pays in, None where there is none."""

    def __init__(self, ground: Ground, info: NodeInfo | None = None) -> None:
        self.ground = ground
        self.slug = ground.network.slug
        self.contracts: dict[str, str] = {}
        if isinstance(ground, EvmGround) and self.slug != "fantom":
            decimals = 18 if self.slug == "bsc" else USDT_DECIMALS
            self.contracts = {"usdt": deploy_token(ground.node.rpc, "USDT", "Tether USD", decimals, returns_nothing=True)}
        elif isinstance(ground, TronGround):
            self.contracts = {}

    @property
    def token(self) -> str | None:
        return "usdt" if self.contracts or self.slug == "tron" else None

    @property
    def info(self) -> NodeInfo:
        return NodeInfo(self.ground.info.rpc_url, self.contracts)

    def pay(self, natives: Sequence[Payment], tokens: Sequence[Payment] = ()) -> None:
        """All of these at once, in a block when this returns."""
        if isinstance(self.ground, EvmGround):
            self._evm(self.ground, natives, tokens)
        elif isinstance(self.ground, UtxoGround):
            self._utxo(self.ground.node, natives)
        elif isinstance(self.ground, TronGround):
            for address, units in natives:
                self.ground.pay(address, units)
            for address, units in tokens:
                self.ground.node.faucet(address, units // 10**USDT_DECIMALS, "USDT")

    def _evm(self, ground: EvmGround, natives: Sequence[Payment], tokens: Sequence[Payment]) -> None:
        rpc, dev = ground.node.rpc, dev_account(ground.node.rpc)
        wanted = [{"from": dev, "to": address, "value": hex(units), "gas": hex(21_000)} for address, units in natives]
        if tokens:
            contract, total = self.contracts["usdt"], sum(units for _, units in tokens)
            made = [call_data("mint(address,uint256)", dev, total)]
            made += [call_data("transfer(address,uint256)", address, units) for address, units in tokens]
            wanted += [{"from": dev, "to": contract, "data": data, "gas": hex(120_000)} for data in made]
        rpc.call("evm_setAutomine", [False])
        try:
            rpc.batch([("eth_sendTransaction", [request]) for request in wanted])
            mine(rpc)
        finally:
            rpc.call("evm_setAutomine", [True])

    def _utxo(self, node: UtxoNode, natives: Sequence[Payment]) -> None:
        for address, units in natives:
            node.send(address, units)
        node.mine()
