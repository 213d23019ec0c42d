"""The part of the API that calls contracts, builds transactions and takes them."""

from __future__ import annotations

from infra.local.tron import execution, machine, tokens
from infra.local.tron.chain import Chain, Refused
from infra.local.tron.delegation import Invalid
from infra.local.tron.messages import CODEC, Signed, from_json, show_address, transaction_json
from infra.local.tron.params import Failed, a_hex, a_number, an_address, is_visible, spelt
from infra.local.tron.protobuf import Malformed
from infra.local.tron.signatures import BadSignature, signer
from infra.local.tron.state import State
from infra.local.tron.views import Json

VALIDATE_ERROR = "class org.tron.core.exception.ContractValidateException"


class Sending:
    """Calls, estimates, building and broadcasting. `estimates`: whether estimateenergy is supported; often it is not."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.estimates = True

    def _call(self, params: Json) -> Json:
        """The TriggerSmartContract that a call's parameters spell."""
        data = a_hex(params, "data") if "data" in params else b""
        if "function_selector" in params:
            data = tokens.selector(str(params["function_selector"])) + a_hex(params, "parameter")
        value = {
            "owner_address": an_address(params, "owner_address"),
            "contract_address": an_address(params, "contract_address"),
            "call_value": a_number(params, "call_value"),
            "data": data,
        }
        return {name: part for name, part in value.items() if part}

    def constant(self, params: Json, state: State) -> Json:
        visible = is_visible(params)
        try:
            value = self._call(params)
            called = self._try(value, state)
        except (Malformed, Invalid) as error:
            code = "OTHER_ERROR" if isinstance(error, Malformed) else "CONTRACT_VALIDATE_ERROR"
            return {"result": {"code": code, "message": spelt(str(error), visible)}}
        unsigned = transaction_json(self.chain.build("TriggerSmartContract", value), visible)
        result: Json = {"result": True}
        if called.reverted:
            result["message"] = spelt("REVERT opcode executed", visible)
        unsigned["ret"] = [{"ret": "FAILED"} if called.reverted else {}]
        shown = {"result": result, "energy_used": called.energy, "constant_result": [called.returned.hex()]}
        return {**shown, "transaction": unsigned}

    def _try(self, value: Json, state: State) -> tokens.Called:
        if not value.get("contract_address"):
            return self._created(value, state)
        if state.get(("contract", value.get("contract_address", b""))) is None:
            raise Invalid("Smart contract is not exist.")
        state.begin()
        try:
            return execution.run(state, value.get("owner_address", bytes(21)), value)
        finally:
            state.rollback()

    def _created(self, value: Json, state: State) -> tokens.Called:
        """Without a contract the data is creation code: a deployment is simulated (java-tron's Util.validateParameter)."""
        if not value.get("data"):
            raise Malformed("At least one of contract_address and data must be set.")
        state.begin()
        try:
            return machine.created(state, value.get("owner_address", bytes(21)), value["data"])
        finally:
            state.rollback()

    def estimate(self, params: Json, state: State) -> Json:
        visible = is_visible(params)
        if not self.estimates:
            words = spelt("this node does not support estimate energy", visible)
            return {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": words}}
        answer = self.constant(params, state)
        if "energy_used" not in answer:
            return answer
        if "message" in answer["result"]:
            return {"result": {"code": "OTHER_ERROR", "message": answer["result"]["message"]}}
        return {"result": {"result": True}, "energy_required": answer["energy_used"]}

    def build(self, kind: str, params: Json) -> Json:
        visible = is_visible(params)
        names = {field.name for field in CODEC.fields(kind)}
        value = from_json(kind, {name: part for name, part in params.items() if name in names}, visible)
        try:
            execution.validate(self.chain.state, kind, value, self.chain.head.time)
        except Invalid as error:
            raise Failed(f"{VALIDATE_ERROR} : {error}") from None
        memo = {"data": a_hex(params, "extra_data")} if params.get("extra_data") else {}
        return transaction_json(self.chain.build(kind, value, **memo), visible)

    def trigger(self, params: Json) -> Json:
        visible = is_visible(params)
        value = self._call(params)
        try:
            execution.validate(self.chain.state, "TriggerSmartContract", value, self.chain.head.time)
        except Invalid as error:
            return {"result": {"code": "CONTRACT_VALIDATE_ERROR", "message": spelt(str(error), visible)}}
        if tokens.is_view(value.get("data", b"")):
            return self.constant(params, self.chain.state)
        limit = {"fee_limit": a_number(params, "fee_limit")} if params.get("fee_limit") else {}
        unsigned = self.chain.build("TriggerSmartContract", value, **limit)
        return {"result": {"result": True}, "transaction": transaction_json(unsigned, visible)}

    def broadcast(self, params: Json) -> Json:
        visible = is_visible(params)
        signed = _posted(params, visible)
        answer: Json = {"result": True}
        try:
            _same_spellings(params, signed)
            self.chain.broadcast(signed)
        except Refused as error:
            answer = {"code": error.code, "message": spelt(error.message, visible)}
        return {**answer, "txid": signed.txid.hex()}

    def broadcast_hex(self, params: Json) -> Json:
        message = CODEC.decode("Transaction", a_hex(params, "transaction"))
        raw = message.get("raw_data", {})
        if any("parameter" not in contract for contract in raw.get("contract", [])):
            raise Malformed("a contract has no parameter")
        signed = Signed(raw, tuple(message.get("signature", [])))
        answer: Json = {"result": True, "code": "SUCCESS", "message": ""}
        try:
            self.chain.broadcast(signed)
        except Refused as error:
            answer = {"result": False, "code": error.code, "message": error.message}
        return {**answer, "transaction": transaction_json(signed, visible=True), "txid": signed.txid.hex()}

    def sign_weight(self, params: Json) -> Json:
        visible = is_visible(params)
        signed = _posted(params, visible)
        if not signed.raw.get("contract"):
            raise Failed("class java.lang.IndexOutOfBoundsException : null")
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
    if any("parameter" not in contract for contract in raw.get("contract", [])):
        raise Malformed("a contract has no parameter")
    try:
        return Signed(raw, tuple(bytes.fromhex(one) for one in signatures))
    except ValueError:
        raise Malformed("INVALID hex String") from None


def _same_spellings(params: Json, signed: Signed) -> None:
    """raw_data_hex and txID, where given, must say what raw_data says. (java-tron reads neither; here it is an error.)"""
    for name, ours in (("raw_data_hex", signed.raw_bytes.hex()), ("txID", signed.txid.hex())):
        if params.get(name) not in (None, ours):
            raise Refused("OTHER_ERROR", f"Error: {name} is not that of raw_data")
