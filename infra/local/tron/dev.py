"""POST /dev/*: what tests and scripts do to the chain, which nobody can do to a real one."""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from chalicelib.encoding import base58check
from chalicelib.encoding.keccak import keccak256
from infra.local.tron.api import Api
from infra.local.tron.chain import Chain, Refused, address_of
from infra.local.tron.messages import show_address
from infra.local.tron.state import PARAMETERS, TRX
from infra.local.tron.tokens import Passer, Token, selector, word
from infra.local.tron.views import Json

USDT = base58check.decode("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")
"""Tether's contract: at the address of the real network, so that the catalogue is right here too."""
FEE_LIMIT = 100 * TRX


class BadRequest(ValueError):
    """Status 400."""


class Dev:
    """The endpoints. `mines` tells whether blocks come by themselves; where not, the faucet mines one at once."""

    def __init__(self, chain: Chain, api: Api, *, mines: bool) -> None:
        self.chain, self._api = chain, api
        self.mines, self.held = mines, False
        self._coins: dict[str, Token] = {}
        self._routes: dict[str, Callable[[Json], Json]] = {
            "faucet": self._faucet,
            "mine": self._mine,
            "reorg": self._reorg,
            "token": self._token,
            "passer": self._passer,
            "time": self._time,
            "drop": self._drop,
            "busy": self._busy,
            "blacklist": self._blacklist,
            "parameter": self._parameter,
            "estimates": self._estimates,
            "pid": lambda _: {"pid": os.getpid()},
        }
        self._deploy({"symbol": "USDT", "name": "Tether USD", "decimals": 6, "returns": "false"}, USDT)

    def knows(self, name: str) -> bool:
        return name in self._routes

    def answer(self, name: str, params: Json) -> Json:
        """The answer of an endpoint that it knows. Raises BadRequest with what is wrong."""
        route = self._routes[name]
        try:
            return route(params)
        except (TypeError, ValueError, KeyError, InvalidOperation) as error:
            raise BadRequest(f"{type(error).__name__}: {error}") from None
        except Refused as error:
            raise BadRequest(str(error)) from None

    def _faucet(self, params: Json) -> Json:
        """{address, coin = TRX, amount}: a transfer by the rich account. `amount` in whole coins, or `units` in the smallest."""
        to, coin = base58check.decode(str(params["address"])), str(params.get("coin", "TRX"))
        token = None if coin.upper() == "TRX" else self._coins.get(coin.upper()) or self._coins[coin]
        units = int(params["units"]) if "units" in params else _units(params["amount"], token.decimals if token else 6)
        if token is None:
            signed = self.chain.send("TransferContract", {"to_address": to, "amount": units})
        else:
            data = selector("transfer(address,uint256)") + to[1:].rjust(32, b"\0") + word(units)
            call = {"contract_address": token.address, "data": data}
            signed = self.chain.send("TriggerSmartContract", call, fee_limit=FEE_LIMIT)
        if params.get("mine", not self.mines):
            self.chain.mine()
        return {"txid": signed.txid.hex()}

    def _mine(self, params: Json) -> Json:
        """{count = 1}."""
        self.chain.mine(int(params.get("count", 1)))
        return self._where()

    def _reorg(self, params: Json) -> Json:
        """{depth, remine = false}: `remine` puts the lost transactions into the new branch."""
        self.chain.reorganise(int(params["depth"]), remine=bool(params.get("remine", False)))
        return self._where()

    def _token(self, params: Json) -> Json:
        """{symbol, name, decimals, returns, symbol_bytes32, fee_basis_points, energy, contract}: deploy; most may be left out."""
        address = base58check.decode(str(params["contract"])) if "contract" in params else None
        token = self._deploy(params, address)
        return {"contract": show_address(token.address, visible=True)}

    def _deploy(self, params: Json, address: bytes | None = None) -> Token:
        symbol, decimals = str(params.get("symbol", "TST")), int(params.get("decimals", 6))
        returns = params.get("returns", "true")
        if returns not in {"true", "false", "nothing"}:
            raise ValueError("returns is true, false or nothing")
        low, high = params.get("energy", (64_285, 130_285))
        token = Token(
            address or self._new_address(symbol),
            address_of(self.chain.dev),
            symbol,
            str(params.get("name", symbol)),
            decimals,
            supply=10**12 * 10**decimals,
            returns=returns,
            symbol_bytes32=bool(params.get("symbol_bytes32", False)),
            fee_basis_points=int(params.get("fee_basis_points", 0)),
            energy=(int(low), int(high)),
        )
        self.chain.deploy(token)
        self._coins[symbol.upper()] = self._coins[show_address(token.address, visible=True)] = token
        return token

    def _passer(self, _: Json) -> Json:
        """{}: deploy a contract whose pay(address) passes TRX on, as an internal transaction."""
        contract = Passer(self._new_address("passer"), address_of(self.chain.dev))
        self.chain.deploy(contract)
        return {"contract": show_address(contract.address, visible=True)}

    def _new_address(self, name: str) -> bytes:
        return b"\x41" + keccak256(f"{name} {self.chain.head.id.hex()}".encode())[12:]

    def _time(self, params: Json) -> Json:
        """{shift_seconds, hold}: move the clock of the blocks to come on; stop or resume mining by itself."""
        shift = int(params.get("shift_seconds", 0))
        if shift < 0:
            raise ValueError("time goes forward only")
        self.chain.shift += shift * 1_000
        self.held = bool(params.get("hold", self.held))
        return {"now": self.chain.now(), "hold": self.held}

    def _drop(self, params: Json) -> Json:
        """{count = 1}: say yes to the next transactions and forget them."""
        self.chain.drop = int(params.get("count", 1))
        return {"drop": self.chain.drop}

    def _busy(self, params: Json) -> Json:
        """{count = 1}: refuse the next transactions with SERVER_BUSY."""
        self.chain.busy = int(params.get("count", 1))
        return {"busy": self.chain.busy}

    def _blacklist(self, params: Json) -> Json:
        """{contract, address, on = true}: transfers by that address are reverted."""
        token, holder = base58check.decode(str(params["contract"])), base58check.decode(str(params["address"]))
        on = bool(params.get("on", True))
        self.chain.settle(("blacklist", token, holder[-20:]), on)
        return {"on": on}

    def _parameter(self, params: Json) -> Json:
        """{key, value}: change a chain parameter, such as getEnergyFee."""
        key, value = str(params["key"]), int(params["value"])
        if key not in PARAMETERS:
            raise ValueError("no such parameter")
        self.chain.settle(("parameter", key), value)
        return {"key": key, "value": value}

    def _estimates(self, params: Json) -> Json:
        """{on}: whether estimateenergy is supported; on many nodes it is not."""
        self._api.sending.estimates = bool(params["on"])
        return {"on": self._api.sending.estimates}

    def _where(self) -> Json:
        return {"number": self.chain.head.number, "id": self.chain.head.id.hex()}


def _units(amount: Any, decimals: int) -> int:
    """Whole coins as smallest units. Raises ValueError for more places than the coin has."""
    scaled = Decimal(str(amount)).scaleb(decimals)
    if scaled != scaled.to_integral_value() or scaled <= 0:
        raise ValueError(f"amount is a positive number with at most {decimals} places")
    return int(scaled)
