"""Checking and carrying out one transaction.

Source: java-tron's Manager.processTransaction and actuators (Transfer, FreezeBalanceV2, UnfreezeBalanceV2, VM), in their words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from chalicelib.encoding import base58check
from infra.local.tron import delegation, tokens
from infra.local.tron.delegation import Invalid, is_address
from infra.local.tron.messages import Signed
from infra.local.tron.protobuf import Message
from infra.local.tron.resources import DAY, Bill, NoResources, affordable_energy, pay_bandwidth, pay_energy
from infra.local.tron.state import TRX, Account, State

RESULT_BYTES = 64
"""Bandwidth that every transaction pays for its result."""
MAX_UNFREEZES = 32


class Insufficient(Exception):
    """BANDWITH_ERROR: no bandwidth, and no TRX to burn for it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a transaction did, for its TransactionInfo. Fees in sun."""

    contract_ret: str = "SUCCESS"
    fee: int = 0
    net: Bill = field(default_factory=Bill)
    energy: Bill = field(default_factory=Bill)
    energy_total: int = 0
    contract_address: bytes = b""
    returned: bytes = b""
    logs: tuple[tokens.Log, ...] = ()
    internal: tuple[tokens.Internal, ...] = ()
    message: str = ""
    withdrawn: int = 0

    @property
    def failed(self) -> bool:
        return self.contract_ret != "SUCCESS"


def apply(state: State, signed: Signed, now: int) -> Outcome:
    """Pay for `signed` and carry it out, at the block time `now`. Raises Invalid, Insufficient; the caller then rolls back."""
    value = signed.contract["parameter"]["value"]
    owner = state.account(value.get("owner_address", b""))
    if owner is None:
        raise Invalid(f"account [{_base58(value.get('owner_address', b''))}] does not exist")
    kind = signed.contract.get("type", "")
    creates = kind == "TransferContract" and state.account(value.get("to_address", b"")) is None
    size = len(signed.encoded()) + RESULT_BYTES
    try:
        net = pay_bandwidth(state, owner, size, now, creates=creates)
        memo = _pay_memo(state, owner.address) if signed.raw.get("data") else 0
    except NoResources:
        raise Insufficient(f"account [{_base58(owner.address)}] has insufficient bandwidth[{size}]") from None
    validate(state, kind, value, now)
    if kind == "TriggerSmartContract":
        outcome = _trigger(state, value, signed.raw.get("fee_limit", 0), now)
    else:
        outcome = _system(state, kind, value, now)
    return replace(outcome, net=net, fee=outcome.fee + net.fee + memo)


def validate(state: State, kind: str, value: Message, now: int) -> None:
    """The checks of the contract itself, which the building calls make too. Raises Invalid."""
    match kind:
        case "TransferContract":
            _validate_transfer(state, value)
        case "FreezeBalanceV2Contract":
            _validate_freeze(state, value)
        case "UnfreezeBalanceV2Contract":
            _validate_unfreeze(state, value)
        case "WithdrawExpireUnfreezeContract":
            _existing(state, value)
        case "DelegateResourceContract":
            delegation.validate(state, _existing(state, value), value, now)
        case "UnDelegateResourceContract":
            delegation.validate_return(state, _existing(state, value, "] does not exist"), value)
        case "TriggerSmartContract":
            if state.get(("contract", value.get("contract_address", b""))) is None:
                raise Invalid("No contract or not a smart contract")
            if value.get("call_value", 0) < 0:
                raise Invalid("callValue must be >= 0")
        case _:
            raise Invalid(f"this test node does not carry out {kind or 'AccountCreateContract'}")


def _validate_transfer(state: State, value: Message) -> None:
    owner, to, amount = value.get("owner_address", b""), value.get("to_address", b""), value.get("amount", 0)
    if not is_address(owner):
        raise Invalid("Invalid ownerAddress!")
    if not is_address(to):
        raise Invalid("Invalid toAddress!")
    if owner == to:
        raise Invalid("Cannot transfer TRX to yourself.")
    account, recipient = state.account(owner), state.account(to)
    if account is None:
        raise Invalid("Validate TransferContract error, no OwnerAccount.")
    if amount <= 0:
        raise Invalid("Amount must be greater than 0.")
    if recipient is not None and recipient.contract:
        raise Invalid("Cannot transfer TRX to a smartContract.")
    fee = 0 if recipient else state.parameter("getCreateNewAccountFeeInSystemContract")
    if account.balance < amount + fee:
        raise Invalid("Validate TransferContract error, balance is not sufficient.")


def _validate_freeze(state: State, value: Message) -> None:
    account, amount = _existing(state, value), value.get("frozen_balance", 0)
    if amount <= 0:
        raise Invalid("frozenBalance must be positive")
    if amount < TRX:
        raise Invalid("frozenBalance must be more than 1TRX")
    if amount > account.balance:
        raise Invalid("frozenBalance must be less than accountBalance")
    if value.get("resource", "BANDWIDTH") == "TRON_POWER":
        raise Invalid("ResourceCode error, valid ResourceCode[BANDWIDTH、ENERGY]")


def _validate_unfreeze(state: State, value: Message) -> None:
    account, amount = _existing(state, value), value.get("unfreeze_balance", 0)
    resource = value.get("resource", "BANDWIDTH")
    if resource == "TRON_POWER":
        raise Invalid("ResourceCode error.valid ResourceCode[BANDWIDTH、Energy]")
    frozen = account.frozen_net if resource == "BANDWIDTH" else account.frozen_energy
    if not frozen:
        raise Invalid(f"no frozenBalance({'BANDWIDTH' if resource == 'BANDWIDTH' else 'Energy'})")
    if not 0 < amount <= frozen:
        raise Invalid(f"Invalid unfreeze_balance, [{amount}] is error")
    if len(account.unfrozen) >= MAX_UNFREEZES:
        raise Invalid("Invalid unfreeze operation, unfreezing times is over limit")


def _existing(state: State, value: Message, words: str = "] not exists") -> Account:
    owner = value.get("owner_address", b"")
    if not is_address(owner):
        raise Invalid("Invalid address")
    account = state.account(owner)
    if account is None:
        raise Invalid(f"Account[{owner.hex()}{words}")
    return account


def _system(state: State, kind: str, value: Message, now: int) -> Outcome:
    owner = state.account(value["owner_address"])
    assert owner is not None  # noqa: S101
    if kind == "TransferContract":
        return _transfer(state, owner, value["to_address"], value["amount"], now)
    if kind == "DelegateResourceContract":
        delegation.delegate(state, owner, value)
        return Outcome()
    if kind == "UnDelegateResourceContract":
        delegation.take_back(state, owner, value, now)
        return Outcome()
    due = sum(amount for _, amount, when in owner.unfrozen if when <= now)
    waiting = tuple(part for part in owner.unfrozen if part[2] > now)
    if kind == "WithdrawExpireUnfreezeContract":
        if not due:
            raise Invalid("no unFreeze balance to withdraw ")
        state.put_account(replace(owner, balance=owner.balance + due, unfrozen=waiting))
        return Outcome(withdrawn=due)
    resource = value.get("resource", "BANDWIDTH")
    if kind == "FreezeBalanceV2Contract":
        amount = value["frozen_balance"]
        _stake(state, replace(owner, balance=owner.balance - amount), resource, amount)
        return Outcome()
    amount = value["unfreeze_balance"]
    waiting += ((resource, amount, now + state.parameter("getUnfreezeDelayDays") * DAY),)
    _stake(state, replace(owner, balance=owner.balance + due, unfrozen=waiting), resource, -amount)
    return Outcome(withdrawn=due)


def _stake(state: State, account: Account, resource: str, amount: int) -> None:
    if resource == "BANDWIDTH":
        before, after = account.frozen_net, account.frozen_net + amount
        state.put_account(replace(account, frozen_net=after))
    else:
        before, after = account.frozen_energy, account.frozen_energy + amount
        state.put_account(replace(account, frozen_energy=after))
    state.put(("weight", resource), state.weight(resource) + after // TRX - before // TRX)


def _transfer(state: State, owner: Account, to: bytes, amount: int, now: int) -> Outcome:
    recipient, fee = state.account(to), 0
    if recipient is None:
        recipient, fee = Account(to, created=now), state.parameter("getCreateNewAccountFeeInSystemContract")
    state.put_account(replace(owner, balance=owner.balance - amount - fee))
    state.put_account(replace(recipient, balance=recipient.balance + amount))
    return Outcome(fee=fee)


def _trigger(state: State, value: Message, fee_limit: int, now: int) -> Outcome:
    if not 0 <= fee_limit <= state.parameter("getMaxFeeLimit"):
        raise Invalid(f"feeLimit must be >= 0 and <= {state.parameter('getMaxFeeLimit')}")
    caller, address = value["owner_address"], value["contract_address"]
    owner = state.account(caller)
    assert owner is not None  # noqa: S101
    most = affordable_energy(state, owner, fee_limit, value.get("call_value", 0), now)
    state.begin()
    try:
        called = run(state, caller, value)
    except BaseException:
        state.rollback()
        raise
    if called.reverted or called.energy > most:
        state.rollback()
    else:
        state.commit()
    energy, ret, message = called.energy, "SUCCESS", ""
    if called.energy > most:
        energy, ret = most, "OUT_OF_ENERGY"
        message = (
            f"Not enough energy for 'SSTORE' operation executing: curInvokeEnergyLimit[{most}], "
            f"curOpEnergy[20000], usedEnergy[{most}]"
        )
        called = tokens.Called(most)
    elif called.reverted:
        ret, message = "REVERT", "REVERT opcode executed"
    payer = state.account(caller)
    assert payer is not None  # noqa: S101
    bill = pay_energy(state, payer, energy, now)
    return Outcome(
        contract_ret=ret, fee=bill.fee, energy=bill, energy_total=energy, contract_address=address, returned=called.returned,
        logs=called.logs, internal=called.internal, message=message,
    )  # fmt: skip


def run(state: State, caller: bytes, value: Message) -> tokens.Called:
    """Call the contract, with the TRX that come along moved first. Raises Invalid when the caller has not so many."""
    address, amount = value["contract_address"], value.get("call_value", 0)
    contract = state.get(("contract", address))
    if amount:
        payer, own = state.account(caller), state.account(address)
        if payer is None or own is None or payer.balance < amount:
            raise Invalid("Validate InternalTransfer error, balance is not sufficient.")
        state.put_account(replace(payer, balance=payer.balance - amount))
        state.put_account(replace(own, balance=own.balance + amount))
    return tokens.call(state, contract, caller, value.get("data", b""), amount)


def _pay_memo(state: State, owner: bytes) -> int:
    account, fee = state.account(owner), state.parameter("getMemoFee")
    if account is None or account.balance < fee:
        raise NoResources
    state.put_account(replace(account, balance=account.balance - fee))
    return fee


def _base58(address: bytes) -> str:
    return base58check.encode(address) if address else ""
