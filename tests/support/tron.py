"""A customer of the Tron test node, who signs for himself: his key, and the requests that a wallet makes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from coincurve import PrivateKey

from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import tron_address
from infra.local.tron.messages import Signed, from_json
from infra.local.tron.process import TronNode
from infra.local.tron.tokens import selector

USDT = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
TRX = 1_000_000


def word(value: int | str) -> str:
    """A number, or an address in base58, as 32 bytes of call data."""
    return f"{value:064x}" if isinstance(value, int) else base58check.decode(value)[1:].hex().rjust(64, "0")


@dataclass(frozen=True)
class Customer:
    """A key and its address."""

    node: TronNode
    key: PrivateKey = field(default_factory=PrivateKey)

    @property
    def address(self) -> str:
        return tron_address(self.key.public_key.format(compressed=False)[1:])

    @property
    def account(self) -> dict[str, Any]:
        return dict(self.node.call("wallet/getaccount", address=self.address, visible=True))

    @property
    def balance(self) -> int:
        """Sun."""
        return int(self.account.get("balance", 0))

    @property
    def resources(self) -> dict[str, int]:
        return dict(self.node.call("wallet/getaccountresource", address=self.address, visible=True))

    def tokens(self, contract: str = USDT) -> int:
        """Smallest units."""
        return int(self.view("balanceOf(address)", word(self.address), contract=contract) or "0", 16)

    def view(self, signature: str, arguments: str = "", *, contract: str = USDT) -> str:
        answer = self.node.call(
            "wallet/triggerconstantcontract", owner_address=self.address, contract_address=contract, visible=True,
            function_selector=signature, parameter=arguments,
        )  # fmt: skip
        return str(answer["constant_result"][0])

    def unsigned(self, to: str, amount: int, **more: Any) -> dict[str, Any]:
        """A transfer of `amount` sun."""
        return self._built("createtransaction", to_address=to, amount=amount, **more)

    def call(
        self, signature: str, arguments: str, *, contract: str = USDT, fee_limit: int = 100 * TRX, value: int = 0
    ) -> dict[str, Any]:
        """A call of a contract."""
        answer = self._built(
            "triggersmartcontract", contract_address=contract, fee_limit=fee_limit, call_value=value,
            data=selector(signature).hex() + arguments,
        )  # fmt: skip
        return dict(answer["transaction"])

    def payment(self, to: str, units: int, **more: Any) -> dict[str, Any]:
        """A transfer of `units` of a token."""
        return self.call("transfer(address,uint256)", word(to) + word(units), **more)

    def stake(self, amount: int, resource: str) -> dict[str, Any]:
        return self._built("freezebalancev2", frozen_balance=amount, resource=resource)

    def unstake(self, amount: int, resource: str) -> dict[str, Any]:
        return self._built("unfreezebalancev2", unfreeze_balance=amount, resource=resource)

    def signed(self, unsigned: dict[str, Any]) -> dict[str, Any]:
        return {**unsigned, "signature": [self.sign(unsigned["txID"])]}

    def sign(self, txid: str) -> str:
        return self.key.sign_recoverable(bytes.fromhex(txid), hasher=None).hex()

    def send(self, unsigned: dict[str, Any]) -> dict[str, Any]:
        """Sign and broadcast; the node's answer."""
        return dict(self.node.http.call("wallet/broadcasttransaction", self.signed(unsigned)))

    def pay(self, unsigned: dict[str, Any]) -> dict[str, Any]:
        """Sign, broadcast and mine; the transaction's info."""
        answer = self.send(unsigned)
        assert answer == {"result": True, "txid": unsigned["txID"]}, answer
        self.node.mine()
        return info(self.node, unsigned["txID"])

    def _built(self, name: str, **params: Any) -> dict[str, Any]:
        answer = self.node.call(f"wallet/{name}", owner_address=self.address, visible=True, **params)
        assert "Error" not in answer, answer
        return dict(answer)


def info(node: TronNode, txid: str) -> dict[str, Any]:
    return dict(node.call("wallet/gettransactioninfobyid", value=txid))


def changed(unsigned: dict[str, Any], **raw: Any) -> dict[str, Any]:
    """Another transaction, with these fields of raw_data, spelt and named rightly."""
    copied = copy.deepcopy(unsigned)
    copied["raw_data"].update(raw)
    again = Signed(from_json("raw", copied["raw_data"], visible=bool(copied.get("visible"))))
    return {**copied, "txID": again.txid.hex(), "raw_data_hex": again.raw_bytes.hex()}


def head(node: TronNode, family: str = "wallet") -> dict[str, Any]:
    """The header of the newest block, with its id."""
    block = node.call(f"{family}/getnowblock")
    return {"number": 0, **block["block_header"]["raw_data"], "id": block["blockID"]}
