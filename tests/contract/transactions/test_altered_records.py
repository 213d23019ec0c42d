"""Records of outgoing transactions that somebody who can write any of them altered, in each of their states: run to the end.

Afterwards nobody is paid who is not to be paid, nothing is paid twice, and nothing is both paid and given back. Either the order
did what was approved, or it stands with an alarm that docs/alarms.md explains. That altered bytes are not signed and not replaced,
field by field, is proved where each kind is tested; here the whole service goes on with them for a while.

With `SWEEP=full` payouts in every state with every field altered, and moves of three kinds in five, of other kinds for the next
field; without it some of each.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from chalicelib.chains.sandbox.payer import SandboxPayer
from chalicelib.domain.ids import AssetId, NetworkId
from chalicelib.domain.money import parse_units
from chalicelib.domain.transactions.outgoing import FORGOTTEN
from chalicelib.domain.treasury.moves import Move
from chalicelib.domain.withdrawals.payout_line import payout_work
from chalicelib.domain.withdrawals.withdrawals import NonceCounter, NonceUse, PaymentOrder
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Close, Open, Save
from chalicelib.usecases.ports.failures import Refused
from chalicelib.usecases.sandbox.sandbox import Decided
from chalicelib.usecases.withdrawals.steps import settled_work
from chalicelib.wiring import services
from tests.support.alarms import raised
from tests.support.outgoing import Scene, opened
from tests.support.shop import PAYEE, STUCK, Kms, Shop, decide
from tests.support.stack import Stack

pytestmark = pytest.mark.slow

FULL = os.environ.get("SWEEP") == "full"
THIEF = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"  # EIP-55's own example
USDC = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
REORG = 64
Record = PaymentOrder | Move
KINDS = ("payout", "topup", "sweep", "distribution", "cold_move", "drain")
STATES = ("planned", "built", "signed", "sent", "settled")
"""`signed`: stored, and no node took it yet; `sent`: out, in no block, and to be replaced."""


def bytes_with(record: Record, **fields: Any) -> str:
    """Its unsigned bytes, altered and well-formed."""
    doc = {**json.loads(bytes.fromhex(record.unsigned or "")), **fields}
    return json.dumps(doc, sort_keys=True, separators=(",", ":")).encode().hex()


def raw_with(record: Record, unsigned: str) -> str:
    """Other bytes under the signature of the first ones."""
    doc = {**json.loads(bytes.fromhex(record.raw or "")), "unsigned": unsigned}
    return json.dumps(doc, sort_keys=True, separators=(",", ":")).encode().hex()


def altered(record: Record, failed: PaymentOrder) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a thief writes into it, by what he means to gain. `failed` paid nothing: it failed on the chain."""
    place = "wallet" if isinstance(record, PaymentOrder) else "source"
    native = record.contract is None
    yield "recipient", {"recipient": THIEF}
    yield "amount", {"amount": record.amount * 2}
    yield "contract", {"contract": USDC if native else None}
    yield "asset", {"asset": AssetId("test:ethereum:usdc")}
    yield "network", {"network": NetworkId("test:bsc")}
    yield "wallet", {place: THIEF}
    own = ("planned", "failed", "dropped") if isinstance(record, Move) else ("bounced",)
    for state in sorted({"built", "signed", "settled", *own} - {record.state}):
        yield f"state {state}", {"state": state}
    if record.unsigned:
        mine = {"recipient": THIEF, "unsigned": bytes_with(record, recipient=THIEF.lower())}
        yield "nonce", {"nonce": (record.nonce or 0) + 1}
        yield "bytes", {"unsigned": mine["unsigned"]}
        yield "bytes of a higher amount", {"unsigned": bytes_with(record, amount=record.amount * 2)}
        yield "recipient and bytes", mine
        yield "nonce and bytes", {"nonce": (record.nonce or 0) + 1, "unsigned": bytes_with(record, nonce=(record.nonce or 0) + 1)}
        if record.raw is not None:
            forgotten = {"raw": None, "txid": None, "state": "built"}
            yield "raw", {"raw": "00"}
            yield "forgotten, another's id", {"raw": FORGOTTEN, "txid": "0x" + "77" * 32}
            yield "forgotten, id of what failed", {"raw": FORGOTTEN, "txid": failed.txid}
            yield "forgotten, id and nonce of what failed", {"raw": FORGOTTEN, "txid": failed.txid, "nonce": failed.nonce}
            yield "raw to the thief", {"raw": raw_with(record, str(mine["unsigned"]))}
            yield "txid", {"txid": "0x" + "77" * 32}
            yield "txid of what failed", {"txid": failed.txid}
            yield "not signed yet", forgotten
            yield "not signed yet, to the thief", {**forgotten, **mine}
            yield "to be replaced, to the thief", {"renew": True, **mine}
        else:
            yield "signed by nobody", {"raw": "00", "txid": "0x" + "77" * 32, "state": "signed"}
            yield "signed and failed", {"raw": "00", "txid": failed.txid, "state": "signed"}


@dataclass
class Case:
    """One record in one state; what it may pay, and to whom."""

    scene: Scene
    record: Record
    withdrawal: str | None
    before: dict[str, int]
    owed: int = 0
    """What the merchant has and was paid, in units of the token, with what is frozen: nothing makes it more."""
    arrived: bool = False
    """Whether a block has it, and its recipient the money, before anything is altered."""

    @property
    def coin(self) -> str:
        return str(self.record.asset).rsplit(":", 1)[1]

    def credited(self) -> int:
        """What was paid, and what it may still take out. What is frozen it has neither of."""
        return self.scene.shop.paid(PAYEE, "usdt") + parse_units(self.scene.shop.available("usdt"), 6)

    def held(self) -> dict[str, int]:
        shop = self.scene.shop
        places = {"thief": THIEF, "payee": PAYEE, "recipient": self.record.recipient}
        return {f"{name} {coin}": shop.paid(where, coin) for name, where in places.items() for coin in ("eth", "usdt", "usdc")}


def record_of(scene: Scene, kind: str) -> tuple[Record, str | None]:
    """The one that is altered; of payouts that of the token, since its own log tells whether it was paid."""
    store = services().store
    if kind == "payout":
        (order,) = (o for o in store.every(PaymentOrder) if o.contract is not None)
        return order, order.withdrawal_id
    named = {"cold_move": "cold"}.get(kind, kind)
    wanted = [m for m in store.every(Move) if m.kind == named and m.owner != "fed"]
    return max(wanted, key=lambda m: (m.created_at, m.contract is not None, m.asset.endswith("usdt"))), None


def brought(base: Scene, kind: str, state: str, kms: Kms, patch: pytest.MonkeyPatch) -> Case:
    """A transaction of the kind in the state."""
    scene = base.begun(kind)
    shop = scene.shop
    if state == "built":
        kms.away = True
        turn(scene)
        kms.away = False
    elif state == "signed":
        with patch.context() as full:
            full.setattr(SandboxPayer, "broadcast", refuse)
            turn(scene)
    elif state == "sent":
        if kind == "payout":
            for withdrawal in shop.get("/v1/withdrawals")["data"]:
                if withdrawal["status"] == "pending":
                    decide(shop, withdrawal["id"], "stick")
        elif kind != "drain":
            shop.chain().plan(record_of(scene, kind)[0].id, "stick")
        turn(scene)
    elif state == "settled":
        turn(scene)
        shop.mine()
        turn(scene)
    record, withdrawal = record_of(scene, kind)
    case = Case(scene, record, withdrawal, {})
    case.before = case.held()
    case.arrived = state == "settled" or (kind == "drain" and state == "sent")  # the pool keeps no drain back
    case.owed = case.credited() + parse_units(shop.balance("usdt")["frozen"], 6)
    return case


def refuse(payer: SandboxPayer, raw: str) -> None:
    raise Refused("the pool is full")


def turn(scene: Scene, *more: str) -> None:
    only = ("poll_ethereum", "relay", "payout", "collect", *more)
    scene.shop.stack.drain(only=only, failures="count", hurry=True, rounds=2)


def run_out(case: Case) -> None:
    """Everything that clocks, queues and blocks bring, for longer than a replacement waits and a reorganisation reaches. A
    transaction that the pool kept back is mined in the middle of it."""
    scene, shop = case.scene, case.scene.shop
    for seconds in (70, STUCK, 70):
        shop.wait(seconds)
        turn(scene, "housekeeping")
        shop.mine()
    for txid in list(shop.chain().reads.pool()):
        with contextlib.suppress(Decided):  # it is mined with the one before it
            shop.chain().settle(txid, "confirm")
    shop.mine(REORG)
    for _ in range(2):
        shop.wait(STUCK)
        turn(scene, "housekeeping")
        shop.mine()


def judge(case: Case, approved: int, changes: dict[str, Any], state: str, caplog: pytest.LogCaptureFixture) -> None:
    """What must hold, whatever was written."""
    now = case.held()
    gained = {name: now[name] - case.before[name] for name in now}
    assert [name for name in gained if name.startswith("thief") and now[name]] == [], "the thief is paid"
    told = raised(caplog)
    got = gained[f"recipient {case.coin}"]
    done = 0 if case.arrived else approved
    # Of a move that is not signed its record alone says the amount, which stays between our own places; a top-up has a bound.
    most = changes.get("amount", done) if case.withdrawal is None and state in ("planned", "built") else done
    assert got in (0, done) or done < got <= most, f"{got} were paid, {done} were approved"
    if case.withdrawal is not None:
        assert case.credited() <= case.owed, "paid, and given back"
    assert got or done == 0 or told, "it stands, and nobody is told"


CASES = [(kind, state) for kind in KINDS for state in STATES if state != "planned" or kind not in ("payout", "drain")]
SAMPLE = {
    ("payout", "sent"): ("recipient", "txid of what failed", "forgotten, id and nonce of what failed"),
    ("topup", "signed"): ("raw to the thief",),
}


def taken(kind: str, state: str, place: int, name: str) -> bool:
    """Whether the field at this place is altered in this record: the sweep has an hour. Drains are never `planned`."""
    if not FULL:
        return name in SAMPLE[kind, state]
    return kind == "payout" or state == "planned" or (KINDS.index(kind) + place) % 5 < 3


@pytest.mark.parametrize("cases", [[case] for case in CASES] if FULL else [list(SAMPLE)], ids=lambda cases: "-".join(cases[0]))
def test_no_altered_record_pays_anybody_else_or_twice(
    cases: list[tuple[str, str]],
    stack: Stack,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    base, kms = opened(stack, ("30", "usdt"), ("1", "eth")), Kms(monkeypatch)
    failing = base.shop.withdraw("0.1")
    decide(base.shop, failing, "fail")
    turn(base)
    base.shop.mine()
    turn(base)
    failed = base.shop.order(failing)
    assert base.shop.withdrawal(failing)["status"] == "failed"
    start = stack.snapshot()
    wrong: list[str] = []
    count = 0
    for kind, state in cases:
        stack.restore(start)
        case = brought(base, kind, state, kms, monkeypatch)
        found, here = case.record, stack.snapshot()
        expected = {"sent": "signed"}.get(state, state)
        assert found.state == expected, (kind, state, found)
        shift = services().clock.shift_ms
        for place, (name, changes) in enumerate(altered(found, failed)):
            if not taken(kind, state, place, name):
                continue
            count += 1
            stack.restore(here)
            services().clock.shift_ms = shift
            caplog.clear()
            elsewhere = "network" in changes and isinstance(found, Move)  # whose key has it
            services().store.commit([Save(replace(found, **changes, version=1 if elsewhere else found.version + 1))])
            run_out(case)
            try:
                judge(case, found.amount, changes, state, caplog)
            except AssertionError as error:
                wrong.append(f"{kind} {state}, {name}: {error}")
    record_property("altered_records", count)
    assert not wrong, "\n".join(wrong)


def test_an_order_under_another_id_in_its_own_place_is_not_signed_anew(stack: Stack, caplog: pytest.LogCaptureFixture) -> None:
    """An order is read by its key; whether it was signed before is asked by the id in it."""
    shop = Shop(stack)
    shop.open(("1", "eth"))
    id = shop.withdraw("0.25")
    for _ in range(2):
        shop.turn()
        shop.mine()
    shop.turn()
    store = services().store
    order, withdrawal = shop.order(id), shop.record(id)
    assert (order.state, withdrawal.status, shop.paid()) == ("settled", "confirmed", 25 * 10**16)
    counter = store.get(NonceCounter, network=order.network, wallet=order.wallet)
    assert counter is not None
    other, nonce = "ord_other", counter.next
    unsigned = bytes_with(order, nonce=nonce)
    anew = replace(
        order, id=other, state="built", raw=None, txid=None, fee=0, signed_at=0, nonce=nonce, unsigned=unsigned, version=1
    )
    use, counted = (
        NonceUse(other, order.network, order.wallet, nonce),
        replace(counter, next=nonce + 1, version=counter.version + 1),
    )
    store.commit([Save(anew), Save(use), Save(counted)])
    place, item = store.models.item(order), store.models.item(anew)
    item.pk, item.sk = place.pk, place.sk
    item.save()
    again = replace(
        withdrawal, status="processing", txid=None, block_number=None, block_hash=None, confirmed_at=None,
        version=withdrawal.version + 1,
    )  # fmt: skip
    settled = settled_work(withdrawal, withdrawal.block_number or 0, withdrawal.block_hash or "")
    store.commit([Save(again), Close(settled), Open(payout_work(again))])
    caplog.clear()
    with in_realm("test"), pytest.raises(LookupError, match="another one's"):
        services().payouts.pay(again.tenant, id)
    made = store.get(PaymentOrder, id=other)
    assert made is not None and made.raw is None
    assert any("is another one's" in line for line in raised(caplog))
    shop.mine()
    assert shop.paid() == 25 * 10**16


# The sweep: a sweep is built anew by the code of the top-up, which stays.
@pytest.mark.parametrize("kind", ["payout", "topup", pytest.param("sweep", marks=pytest.mark.sweep)])
def test_first_bytes_with_a_huge_fee_are_built_anew(
    kind: str, stack: Stack, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They do what was approved, and would burn a thousand times the fee."""
    base, kms = opened(stack, ("30", "usdt"), ("1", "eth")), Kms(monkeypatch)
    case = brought(base, kind, "built", kms, monkeypatch)
    record, store = case.record, services().store
    fee = json.loads(bytes.fromhex(record.unsigned or ""))["fee"]
    caplog.clear()
    store.commit([Save(replace(record, version=record.version + 1, unsigned=bytes_with(record, fee=fee * 1000)))])
    for seconds in (70, STUCK, STUCK):
        case.scene.shop.wait(seconds)
        turn(case.scene, "housekeeping")
    now, _ = record_of(case.scene, kind)
    assert now.raw is not None and now.fee == fee
    assert any(f"may cost {fee * 1000}, and {fee * 10} is the most by the fees of now" in line for line in raised(caplog))
