"""java-tron's HTTP API over a chain: wallet/* as of the head with what is pending, walletsolidity/* as of the solid block.

Source: the pages of docs/api/http in tronprotocol/documentation-en.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infra.local.tron import delegation, views
from infra.local.tron.chain import Block, Chain
from infra.local.tron.messages import read_address, show_address, transaction_json
from infra.local.tron.params import Failed, a_hex, a_number, an_address, is_true, is_visible
from infra.local.tron.protobuf import Malformed
from infra.local.tron.sending import Sending
from infra.local.tron.state import PARAMETERS, State
from infra.local.tron.views import Json

MOST_BLOCKS = 100
PARSE_ERROR = "class org.tron.core.services.http.JsonFormat$ParseException"


class Api:
    """The endpoints, by path. `answer` is for one request at a time."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.sending = Sending(chain)
        self._routes: dict[str, Callable[[Json, bool], Any]] = {
            "getnodeinfo": self._node_info,
            "getnowblock": lambda _, solid: self._block(self._top(solid), _),
            "getblock": self._get_block,
            "getblockbynum": self._block_by_number,
            "getblockbyid": self._block_by_id,
            "getblockbylimitnext": self._blocks_between,
            "getblockbylatestnum": self._latest_blocks,
            "getaccount": self._account,
            "getaccountresource": lambda params, solid: self._resources(params, solid, energy=True),
            "getaccountnet": lambda params, solid: self._resources(params, solid, energy=False),
            "getcandelegatedmaxsize": self._can_delegate,
            "getdelegatedresourcev2": self._delegated,
            "getcontract": self._contract,
            "triggerconstantcontract": lambda params, solid: self.sending.constant(params, self._state(solid)),
            "estimateenergy": lambda params, solid: self.sending.estimate(params, self._state(solid)),
            "gettransactionbyid": self._transaction,
            "gettransactioninfobyid": self._info,
            "gettransactioninfobyblocknum": self._infos,
            "gettransactioncountbyblocknum": self._count,
        }
        self._wallet_routes: dict[str, Callable[[Json], Any]] = {
            "createtransaction": lambda params: self.sending.build("TransferContract", params),
            "freezebalancev2": lambda params: self.sending.build("FreezeBalanceV2Contract", params),
            "unfreezebalancev2": lambda params: self.sending.build("UnfreezeBalanceV2Contract", params),
            "delegateresource": lambda params: self.sending.build("DelegateResourceContract", params),
            "undelegateresource": lambda params: self.sending.build("UnDelegateResourceContract", params),
            "withdrawexpireunfreeze": lambda params: self.sending.build("WithdrawExpireUnfreezeContract", params),
            "triggersmartcontract": self.sending.trigger,
            "broadcasttransaction": self.sending.broadcast,
            "broadcasthex": self.sending.broadcast_hex,
            "getsignweight": self.sending.sign_weight,
            "getchainparameters": self._parameters,
            "validateaddress": self._validate_address,
            "gettransactionlistfrompending": lambda _: {"txId": [txid.hex() for txid in chain.pending]} if chain.pending else {},
            "gettransactionfrompending": self._pending,
            "getpendingsize": lambda _: {"pendingSize": len(chain.pending)},
        }

    def knows(self, family: str, name: str) -> bool:
        return name in self._routes or (family == "wallet" and name in self._wallet_routes)

    def answer(self, family: str, name: str, params: Json) -> Any:
        """The JSON of an endpoint that it knows."""
        try:
            if name in self._routes:
                return self._routes[name](params, family == "walletsolidity")
            return self._wallet_routes[name](params)
        except Malformed as error:
            return {"Error": f"{PARSE_ERROR} : {error}"}
        except Failed as error:
            return {"Error": str(error)}

    def _top(self, solid: bool) -> Block:
        return self.chain.solid if solid else self.chain.head

    def _state(self, solid: bool) -> State:
        return self.chain.solid_state if solid else self.chain.state

    def _node_info(self, _: Json, solid: bool) -> Json:
        head, bottom = self.chain.head, self.chain.solid
        return {
            "activeConnectCount": 0,
            "beginSyncNum": head.number,
            "block": f"Num:{head.number},ID:{head.id.hex()}",
            "solidityBlock": f"Num:{bottom.number},ID:{bottom.id.hex()}",
            "currentConnectCount": 0,
            "passiveConnectCount": 0,
            "peerList": [],
            "totalFlow": 0,
            "configNodeInfo": {"codeVersion": "4.8.1", "p2pVersion": "11111", "supportConstant": True},
        }

    def _block(self, block: Block | None, params: Json, *, detail: bool = True) -> Json:
        return views.block(block, is_visible(params), detail=detail) if block else {}

    def _get_block(self, params: Json, solid: bool) -> Json:
        wanted, detail = str(params.get("id_or_num", "")), is_true(params, "detail")
        if not wanted:
            return self._block(self._top(solid), params, detail=detail)
        if wanted.isdecimal() and len(wanted) < 20:
            return self._block(self._numbered(int(wanted), solid), params, detail=detail)
        if wanted.startswith("-"):
            raise Failed("num must be non-positive number.")
        try:
            return self._block(self._identified(bytes.fromhex(wanted), solid), params, detail=detail)
        except ValueError:
            raise Failed("id must be legal block hash.") from None

    def _numbered(self, number: int, solid: bool) -> Block | None:
        return self.chain.blocks[number] if 0 <= number <= self._top(solid).number else None

    def _identified(self, block_id: bytes, solid: bool) -> Block | None:
        found = self.chain.by_id(block_id)
        return found if found and found.number <= self._top(solid).number else None

    def _block_by_number(self, params: Json, solid: bool) -> Json:
        return self._block(self._numbered(a_number(params, "num"), solid), params)

    def _block_by_id(self, params: Json, solid: bool) -> Json:
        return self._block(self._identified(a_hex(params, "value"), solid), params)

    def _blocks_between(self, params: Json, solid: bool) -> Json:
        start, end = a_number(params, "startNum"), a_number(params, "endNum")
        if not 0 <= start < end or end - start > MOST_BLOCKS:
            return {}
        found = self.chain.blocks[start : min(end, self._top(solid).number + 1)]
        return {"block": [self._block(one, params) for one in found]} if found else {}

    def _latest_blocks(self, params: Json, solid: bool) -> Json:
        count, top = a_number(params, "num"), self._top(solid).number + 1
        if not 0 < count < MOST_BLOCKS:
            return {}
        return {"block": [self._block(one, params) for one in reversed(self.chain.blocks[max(top - count, 0) : top])]}

    def _account(self, params: Json, solid: bool) -> Json:
        found = self._state(solid).account(an_address(params, "address"))
        return views.account(found, self._top(solid).time, is_visible(params)) if found else {}

    def _resources(self, params: Json, solid: bool, *, energy: bool) -> Json:
        state = self._state(solid)
        found = state.account(an_address(params, "address"))
        return views.resources(state, found, self._top(solid).time, energy=energy) if found else {}

    def _can_delegate(self, params: Json, solid: bool) -> Json:
        state = self._state(solid)
        found, kind = state.account(an_address(params, "owner_address")), a_number(params, "type")
        if found is None or kind not in (0, 1):
            return {}
        size = delegation.most(state, found, delegation.RESOURCES[kind], self._top(solid).time)
        return views.present({"max_size": size})

    def _delegated(self, params: Json, solid: bool) -> Json:
        owner, receiver = an_address(params, "fromAddress"), an_address(params, "toAddress")
        net, energy = delegation.delegated(self._state(solid), owner, receiver)
        if not net and not energy:
            return {}
        visible = is_visible(params)
        shown = {"from": show_address(owner, visible), "to": show_address(receiver, visible)}
        lent = views.present({"frozen_balance_for_bandwidth": net, "frozen_balance_for_energy": energy})
        return {"delegatedResource": [{**shown, **lent}]}

    def _contract(self, params: Json, solid: bool) -> Json:
        found = self._state(solid).get(("contract", an_address(params, "value")))
        return views.contract(found, is_visible(params)) if found else {}

    def _transaction(self, params: Json, solid: bool) -> Json:
        found = self.chain.find(a_hex(params, "value"))
        if found is None or found[0].number > self._top(solid).number:
            return {}
        return transaction_json(found[1].signed, is_visible(params), found[1].outcome.contract_ret)

    def _info(self, params: Json, solid: bool) -> Json:
        found = self.chain.find(a_hex(params, "value"))
        if found is None or found[0].number > self._top(solid).number:
            return {}
        return views.info(*found, is_visible(params))

    def _infos(self, params: Json, solid: bool) -> Any:
        number = a_number(params, "num")
        block = self._numbered(number, solid)
        if number <= 0:
            return {}
        return [views.info(block, one, is_visible(params)) for one in block.included] if block else []

    def _count(self, params: Json, solid: bool) -> Json:
        block = self._numbered(a_number(params, "num"), solid)
        return {"count": len(block.included) if block else -1}

    def _pending(self, params: Json) -> Json:
        signed = self.chain.pending.get(a_hex(params, "value"))
        return transaction_json(signed, is_visible(params)) if signed else {}

    def _parameters(self, _: Json) -> Json:
        return {"chainParameter": [{"key": key, "value": self.chain.state.parameter(key)} for key in PARAMETERS]}

    def _validate_address(self, params: Json) -> Json:
        text = str(params.get("address", ""))
        lengths = {42: ("Hex string format", False), 34: ("Base58check format", True)}
        if len(text) not in lengths:
            return {"result": False, "message": "Length error"}
        said, visible = lengths[len(text)]
        try:
            good = delegation.is_address(read_address(text, visible))
        except Malformed as error:
            return {"result": False, "message": str(error)}
        return {"result": good, "message": said if good else "Invalid address"}
