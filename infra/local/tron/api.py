"""java-tron's HTTP API over a chain: wallet/* as of the head with what is pending, walletsolidity/* as of the solid block.

Source: the pages of docs/api/http in tronprotocol/documentation-en.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infra.local.tron import execution, tokens, views
from infra.local.tron.chain import Block, Chain, Refused
from infra.local.tron.messages import CODEC, Signed, from_json, read_address, show_address, transaction_json
from infra.local.tron.protobuf import Malformed
from infra.local.tron.signatures import BadSignature, signer
from infra.local.tron.state import State
from infra.local.tron.views import Json

MOST_BLOCKS = 100
PARSE_ERROR = "class org.tron.core.services.http.JsonFormat$ParseException"
VALIDATE_ERROR = "class org.tron.core.exception.ContractValidateException"


class Failed(Exception):
    """An answer {"Error": ...}, which java-tron gives with status 200."""


class Api:
    """The endpoints, by path. `answer` is for one request at a time."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.estimates = True
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
            "getcontract": self._contract,
            "triggerconstantcontract": self._constant,
            "estimateenergy": self._estimate,
            "gettransactionbyid": self._transaction,
            "gettransactioninfobyid": self._info,
            "gettransactioninfobyblocknum": self._infos,
            "gettransactioncountbyblocknum": self._count,
        }
        self._wallet_routes: dict[str, Callable[[Json], Any]] = {
            "createtransaction": lambda params: self._build("TransferContract", params),
            "freezebalancev2": lambda params: self._build("FreezeBalanceV2Contract", params),
            "unfreezebalancev2": lambda params: self._build("UnfreezeBalanceV2Contract", params),
            "withdrawexpireunfreeze": lambda params: self._build("WithdrawExpireUnfreezeContract", params),
            "triggersmartcontract": self._trigger,
            "broadcasttransaction": self._broadcast,
            "broadcasthex": self._broadcast_hex,
            "getsignweight": self._sign_weight,
            "getchainparameters": self._parameters,
            "validateaddress": self._validate_address,
            "gettransactionlistfrompending": lambda _: {"txId": [txid.hex() for txid in chain.pending]} if chain.pending else {},
            "gettransactionfrompending": self._pending,
            "getpendingsize": lambda _: {"pendingSize": len(chain.pending)},
        }

    def knows(self, family: str, name: str) -> bool:
        return name in self._routes or (family == "wallet" and name in self._wallet_routes)

    def answer(self, family: str, name: str, params: Json) -> Any:
        """The JSON for `family`/`name`. Raises LookupError when there is no such endpoint."""
        try:
            if name in self._routes:
                return self._routes[name](params, family == "walletsolidity")
            if family == "wallet":
                return self._wallet_routes[name](params)
            raise LookupError(name)
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
        return views.block(block, _visible(params), detail=detail) if block else {}

    def _get_block(self, params: Json, solid: bool) -> Json:
        wanted, detail = str(params.get("id_or_num", "")), bool(params.get("detail", False))
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
        return self._block(self._numbered(_number(params, "num"), solid), params)

    def _block_by_id(self, params: Json, solid: bool) -> Json:
        return self._block(self._identified(_hex(params, "value"), solid), params)

    def _blocks_between(self, params: Json, solid: bool) -> Json:
        start, end = _number(params, "startNum"), _number(params, "endNum")
        if not 0 <= start < end or end - start > MOST_BLOCKS:
            return {}
        found = self.chain.blocks[start : min(end, self._top(solid).number + 1)]
        return {"block": [self._block(one, params) for one in found]} if found else {}

    def _latest_blocks(self, params: Json, solid: bool) -> Json:
        count, top = _number(params, "num"), self._top(solid).number + 1
        if not 0 < count < MOST_BLOCKS:
            return {}
        return {"block": [self._block(one, params) for one in reversed(self.chain.blocks[max(top - count, 0) : top])]}

    def _account(self, params: Json, solid: bool) -> Json:
        found = self._state(solid).account(_address(params, "address"))
        return views.account(found, self._top(solid).time, _visible(params)) if found else {}

    def _resources(self, params: Json, solid: bool, *, energy: bool) -> Json:
        state = self._state(solid)
        found = state.account(_address(params, "address"))
        return views.resources(state, found, self._top(solid).time, energy=energy) if found else {}

    def _contract(self, params: Json, solid: bool) -> Json:
        found = self._state(solid).get(("contract", _address(params, "value")))
        return views.contract(found, _visible(params)) if found else {}

    def _transaction(self, params: Json, solid: bool) -> Json:
        found = self.chain.find(_hex(params, "value"))
        if found is None or found[0].number > self._top(solid).number:
            return {}
        return transaction_json(found[1].signed, _visible(params), found[1].outcome.contract_ret)

    def _info(self, params: Json, solid: bool) -> Json:
        found = self.chain.find(_hex(params, "value"))
        if found is None or found[0].number > self._top(solid).number:
            return {}
        return views.info(*found, _visible(params))

    def _infos(self, params: Json, solid: bool) -> Any:
        number = _number(params, "num")
        block = self._numbered(number, solid)
        if number <= 0:
            return {}
        return [views.info(block, one, _visible(params)) for one in block.included] if block else []

    def _count(self, params: Json, solid: bool) -> Json:
        block = self._numbered(_number(params, "num"), solid)
        return {"count": len(block.included) if block else -1}

    def _pending(self, params: Json) -> Json:
        signed = self.chain.pending.get(_hex(params, "value"))
        return transaction_json(signed, _visible(params)) if signed else {}

    def _parameters(self, _: Json) -> Json:
        from infra.local.tron.state import PARAMETERS

        return {"chainParameter": [{"key": key, "value": self.chain.state.parameter(key)} for key in PARAMETERS]}

    def _validate_address(self, params: Json) -> Json:
        text = str(params.get("address", ""))
        lengths = {42: ("Hex string format", False), 34: ("Base58check format", True)}
        if len(text) not in lengths:
            return {"result": False, "message": "Length error"}
        said, visible = lengths[len(text)]
        try:
            good = execution.is_address(read_address(text, visible))
        except Malformed as error:
            return {"result": False, "message": str(error)}
        return {"result": good, "message": said if good else "Invalid address"}

    def _call(self, params: Json) -> Json:
        """The TriggerSmartContract that a call's parameters spell."""
        data = _hex(params, "data") if "data" in params else b""
        if "function_selector" in params:
            data = tokens.selector(str(params["function_selector"])) + _hex(params, "parameter")
        value = {
            "owner_address": _address(params, "owner_address"),
            "contract_address": _address(params, "contract_address"),
            "call_value": _number(params, "call_value"),
            "data": data,
        }
        return {name: part for name, part in value.items() if part}

    def _constant(self, params: Json, solid: bool) -> Json:
        visible = _visible(params)
        try:
            value = self._call(params)
            called = self._try(value, self._state(solid))
        except (Malformed, execution.Invalid) as error:
            code = "OTHER_ERROR" if isinstance(error, Malformed) else "CONTRACT_VALIDATE_ERROR"
            return {"result": {"code": code, "message": _message(str(error), visible)}}
        unsigned = transaction_json(self.chain.build("TriggerSmartContract", value), visible)
        result: Json = {"result": True}
        if called.reverted:
            result["message"] = _message("REVERT opcode executed", visible)
        unsigned["ret"] = [{"ret": "FAILED"} if called.reverted else {}]
        shown = {"result": result, "energy_used": called.energy, "constant_result": [called.returned.hex()]}
        return {**shown, "transaction": unsigned}

    def _try(self, value: Json, state: State) -> tokens.Called:
        if state.get(("contract", value.get("contract_address", b""))) is None:
            raise execution.Invalid("Smart contract is not exist.")
        state.begin()
        try:
            return execution.run(state, value.get("owner_address", bytes(21)), value)
        finally:
            state.rollback()

    def _estimate(self, params: Json, solid: bool) -> Json:
        visible = _visible(params)
        if not self.estimates:
            words = _message("this node does not support estimate energy", visible)
            return {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": words}}
        answer = self._constant(params, solid)
        if "energy_used" not in answer:
            return answer
        if "message" in answer["result"]:
            return {"result": {"code": "OTHER_ERROR", "message": answer["result"]["message"]}}
        return {"result": {"result": True}, "energy_required": answer["energy_used"]}

    def _build(self, kind: str, params: Json) -> Json:
        visible = _visible(params)
        names = {field.name for field in CODEC.fields(kind)}
        value = from_json(kind, {name: part for name, part in params.items() if name in names}, visible)
        try:
            execution.validate(self.chain.state, kind, value)
        except execution.Invalid as error:
            raise Failed(f"{VALIDATE_ERROR} : {error}") from None
        memo = {"data": _hex(params, "extra_data")} if params.get("extra_data") else {}
        return transaction_json(self.chain.build(kind, value, **memo), visible)

    def _trigger(self, params: Json) -> Json:
        visible = _visible(params)
        value = self._call(params)
        try:
            execution.validate(self.chain.state, "TriggerSmartContract", value)
        except execution.Invalid as error:
            return {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": _message(str(error), visible)}}
        if tokens.is_view(value.get("data", b"")):
            return self._constant(params, solid=False)
        limit = {"fee_limit": _number(params, "fee_limit")} if params.get("fee_limit") else {}
        unsigned = self.chain.build("TriggerSmartContract", value, **limit)
        return {"result": {"result": True}, "transaction": transaction_json(unsigned, visible)}

    def _broadcast(self, params: Json) -> Json:
        visible = _visible(params)
        signed = _posted(params, visible)
        answer: Json = {"result": True}
        try:
            _same_spellings(params, signed)
            self.chain.broadcast(signed)
        except Refused as error:
            answer = {"code": error.code, "message": _message(error.message, visible)}
        return {**answer, "txid": signed.txid.hex()}

    def _broadcast_hex(self, params: Json) -> Json:
        message = CODEC.decode("Transaction", _hex(params, "transaction"))
        signed = Signed(message.get("raw_data", {}), tuple(message.get("signature", [])))
        answer: Json = {"result": True, "code": "SUCCESS", "message": ""}
        try:
            self.chain.broadcast(signed)
        except Refused as error:
            answer = {"result": False, "code": error.code, "message": error.message}
        return {**answer, "transaction": transaction_json(signed, visible=True), "txid": signed.txid.hex()}

    def _sign_weight(self, params: Json) -> Json:
        visible = _visible(params)
        signed = _posted(params, visible)
        owner = signed.contract["parameter"]["value"].get("owner_address", b"")
        try:
            signers = [signer(signed.txid, signature) for signature in signed.signatures]
        except (BadSignature, IndexError) as error:
            return {"result": {"code": "SIGNATURE_FORMAT_ERROR", "message": str(error)}}
        result: Json = {} if owner in signers else {"code": "NOT_ENOUGH_PERMISSION"}
        if strangers := [one for one in signers if one != owner]:
            result = {"code": "PERMISSION_ERROR", "message": f"{strangers[0].hex()} is not contained of permission."}
        return {
            "result": result,
            "approved_list": [show_address(one, visible) for one in signers],
            "permission": {
                "keys": [{"address": show_address(owner, visible), "weight": 1}],
                "threshold": 1,
                "permission_name": "owner",
            },
            "current_weight": int(owner in signers),
            "transaction": {
                "result": {"result": True},
                "txid": signed.txid.hex(),
                "transaction": transaction_json(signed, visible),
            },
        }


def _posted(params: Json, visible: bool) -> Signed:
    """The transaction in a request's body. Raises Failed, Malformed."""
    if not isinstance(params.get("raw_data"), dict):
        raise Failed("class java.lang.NullPointerException : null")
    signatures = params.get("signature", [])
    if not isinstance(signatures, list) or not all(isinstance(one, str) for one in signatures):
        raise Failed("class java.lang.NullPointerException : null")
    raw = from_json("raw", params["raw_data"], visible)
    for contract in raw.get("contract", []):
        if contract.get("type") != contract.get("parameter", {}).get("type_url", "").rpartition(".")[2]:
            raise Malformed("type and parameter of the contract differ")
    try:
        return Signed(raw, tuple(bytes.fromhex(one) for one in signatures))
    except ValueError:
        raise Malformed("INVALID hex String") from None


def _same_spellings(params: Json, signed: Signed) -> None:
    """raw_data_hex and txID, where given, must say what raw_data says. (java-tron reads neither; here it is an error.)"""
    for name, ours in (("raw_data_hex", signed.raw_bytes.hex()), ("txID", signed.txid.hex())):
        if params.get(name) not in (None, ours):
            raise Refused("OTHER_ERROR", f"Error: {name} is not that of raw_data")


def _visible(params: Json) -> bool:
    return str(params.get("visible", False)).lower() == "true"


def _message(words: str, visible: bool) -> str:
    return words if visible else words.encode().hex()


def _number(params: Json, name: str) -> int:
    try:
        return int(params.get(name, 0))
    except (TypeError, ValueError):
        raise Malformed(f"{name} is not a number") from None


def _hex(params: Json, name: str) -> bytes:
    return read_address(str(params.get(name, "")).removeprefix("0x"), visible=False)


def _address(params: Json, name: str) -> bytes:
    text = params.get(name)
    return read_address(str(text), _visible(params)) if text else b""
