"""Records of UTXO transactions that somebody who can write any of them altered, in each of their states: run to the end.

As `test_altered_records` for account networks: afterwards nobody is paid who is not to be paid, nothing is paid twice or both paid
and given back, and what did not do what was approved stands with an alarm that docs/alarms.md explains.

With `SWEEP=full` every kind in every state with every field altered; without it some of each.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.money import parse_units
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.treasury.hot_utxos import HeldCoin
from chalicelib.domain.withdrawals.bundles import Bundle
from chalicelib.domain.withdrawals.withdrawals import PaymentOrder
from chalicelib.encoding import base58check
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Refused, Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.wiring import services
from tests.contract.treasury.coin_treasury import KINDS, DigestKeys, Treasury
from tests.support.alarms import raised
from tests.support.bundles import COIN, HANDLERS, REORG
from tests.support.fake_coins import DigestSigner, FakeCoins
from tests.support.stack import Stack

pytestmark = pytest.mark.slow

FULL = os.environ.get("SWEEP") == "full"
THIEF = base58check.encode(bytes([0x32]) + bytes(range(20, 40)))
OTHER = "11" * 32 + ":0"
DUE = (1 * COIN, 2 * COIN)
"""What the two payees of the bundle are to get."""
STATES = ("built", "signed", "sent", "settled")
"""`signed`: stored, and no node took it yet; `sent`: out, in no block."""
Record = Bundle | CoinMove | PaymentOrder


def written(unsigned: str) -> Any:
    return json.loads(bytes.fromhex(unsigned))


def to_thief(unsigned: str) -> str:
    """The same bytes, whose first output pays somebody else."""
    doc = written(unsigned)
    return json.dumps({**doc, "out": [[THIEF, doc["out"][0][1]], *doc["out"][1:]]}).encode().hex()


def signed_by_nobody(unsigned: str) -> str:
    """By somebody else: a node refuses it."""
    return json.dumps({"signed": unsigned, "by": "nobody"}).encode().hex()


def of_order(order: PaymentOrder, mined: str) -> Iterator[tuple[str, Record]]:
    yield "order's recipient", replace(order, recipient=THIEF)
    yield "order's amount", replace(order, amount=order.amount * 2)
    yield "order's contract", replace(order, contract="ltc1qcontract")
    yield "order's wallet", replace(order, wallet=THIEF)
    yield "order's bundle", replace(order, bundle=None)
    yield "order's withdrawal", replace(order, withdrawal_id="wd_of_nobody")
    yield "order's id of what is mined", replace(order, txid=mined)
    for state in sorted({"built", "signed", "settled", "bounced"} - {order.state}):
        yield f"order {state}", replace(order, state=state)  # type: ignore[arg-type]


def of_attempt(record: Bundle | CoinMove, mined: str) -> Iterator[tuple[str, Record]]:
    """Its newest attempt, altered."""
    newest: Any = record.newest
    if newest is None:
        return

    def made(**fields: Any) -> Any:
        return replace(record, newest=replace(newest, **fields))

    yield "fee", made(fee=newest.fee * 2)
    yield "size", made(vsize=newest.vsize * 9)
    if isinstance(record, Bundle):
        yield "inputs", made(inputs=newest.inputs[:-1])
        yield "another input", made(inputs=(HeldCoin(OTHER, newest.inputs[0].amount, 1), *newest.inputs[1:]))
        yield "an input's amount", made(inputs=(replace(newest.inputs[0], amount=1), *newest.inputs[1:]))
        yield "no change", made(change=None, change_amount=0)
        yield "change", made(change_amount=newest.change_amount * 2)
        yield "change's place", made(change="out:0")
    else:
        yield "attempt's amount", made(amount=newest.amount * 2)
        yield "change", made(change=newest.change + 1)
    if newest.unsigned:
        yield "bytes", made(unsigned=to_thief(newest.unsigned))
    if newest.raw is None:
        yield "signed by nobody", replace(made(raw="00", txid="77" * 32), state="signed")
        yield "signed, and mined", replace(made(raw="00", txid=mined), state="signed")
        return
    yield "raw", made(raw="00")
    yield "raw to the thief", made(raw=signed_by_nobody(to_thief(newest.unsigned)))
    yield "id", made(txid="77" * 32)
    yield "id of what is mined", made(txid=mined)
    yield "not signed yet", replace(made(raw=None, txid=None), state="built")
    yield "not signed yet, to the thief", replace(made(raw=None, txid=None, unsigned=to_thief(newest.unsigned)), state="built")
    yield "to be replaced, to the thief", replace(made(unsigned=to_thief(newest.unsigned)), renew=True)
    yield "nothing signed", replace(record, newest=None)


def of_bundle(bundle: Bundle) -> Iterator[tuple[str, Record]]:
    first, *rest = bundle.payouts
    yield "recipient", replace(bundle, payouts=(replace(first, recipient=THIEF), *rest))
    yield "amount", replace(bundle, payouts=(replace(first, amount=first.amount * 2), *rest))
    yield "payments", replace(bundle, payouts=tuple(rest))
    yield "a payment more", replace(bundle, payouts=(*bundle.payouts, replace(first, recipient=THIEF)))
    yield "wallet", replace(bundle, wallet=THIEF)
    for state in sorted({"gathering", "built", "signed", "settled", "dead"} - {bundle.state}):
        yield f"state {state}", replace(bundle, state=state)  # type: ignore[arg-type]


def of_move(move: CoinMove) -> Iterator[tuple[str, Record]]:
    yield "recipient", replace(move, recipient=THIEF)
    yield "amount", replace(move, amount=move.amount * 2)
    yield "wallet", replace(move, wallet=THIEF)
    yield "inputs", replace(move, inputs=move.inputs[:-1])
    yield "another input", replace(move, inputs=(replace(move.inputs[0], outpoint=OTHER), *move.inputs[1:]))
    yield "an input's amount", replace(move, inputs=(replace(move.inputs[0], amount=1), *move.inputs[1:]))
    yield "booked", replace(move, booked=0 if move.booked else len(move.inputs))
    for kind in sorted({"consolidation", "cold", "drain"} - {move.kind}):
        yield f"kind {kind}", replace(move, kind=kind)  # type: ignore[arg-type]
    for state in sorted({"waiting", "built", "signed", "settled", "dead", "dropped"} - {move.state}):
        yield f"state {state}", replace(move, state=state)  # type: ignore[arg-type]


def altered(treasury: Treasury, mined: str) -> Iterator[tuple[str, Record]]:
    bundles, moves = treasury.bundles(), treasury.moves()
    record = bundles[-1] if bundles else moves[-1]
    yield from of_bundle(record) if isinstance(record, Bundle) else of_move(record)
    yield from of_attempt(record, mined)
    if isinstance(record, Bundle):
        order = next(o for o in services().store.every(PaymentOrder) if o.amount == DUE[0])
        yield from of_order(order, mined)


def turn(treasury: Treasury, minutes: int = 1) -> None:
    treasury.later(minutes)
    treasury.stack.drain(only=(*HANDLERS, "collect"), failures="count", hurry=True, rounds=2)


def away(*_: Any, **__: Any) -> Any:
    raise Unavailable("no key")


def refuse(*_: Any, **__: Any) -> Any:
    raise Refused("the pool is full")


def bring(treasury: Treasury, kind: str, state: str, patch: pytest.MonkeyPatch) -> None:
    """A transaction of the kind in the state."""
    KINDS[kind](treasury)
    if kind == "bundled":
        treasury.settle_for(collectThreshold="100")  # its deposits stay where they are
    with patch.context() as without:
        if state == "built":
            without.setattr(DigestSigner, "sign", away)
            without.setattr(DigestKeys, "opened", away)
        elif state == "signed":
            without.setattr(FakeCoins, "broadcast", refuse)
        turn(treasury)
        turn(treasury)
    if state == "settled":
        treasury.chain.mine(6)
        turn(treasury)
    records: list[Any] = [*treasury.bundles(), *treasury.moves()]
    assert [each.state for each in records] == [{"sent": "signed"}.get(state, state)], records


def kept(collecting: tuple[Stack, Any, Any, FakeCoins], treasury: Treasury) -> Callable[[], Treasury]:
    """Gives it back as it is now, as often as asked."""
    stack, _, at_work, _ = collecting
    here, chain, minutes = stack.snapshot(), copy.deepcopy(treasury.chain), treasury.minutes

    def again() -> Treasury:
        at_work["chain"] = copy.deepcopy(chain)
        stack.restore(here)
        found = Treasury(stack, at_work["chain"])
        found.later(minutes)
        return found

    return again


def run_out(treasury: Treasury) -> None:
    """Everything that clocks, queues and blocks bring, for longer than a replacement waits and a reorganisation reaches."""
    turn(treasury)
    turn(treasury, 120)
    for blocks in (1, 6, REORG, 6):
        treasury.chain.mine(blocks)
        turn(treasury)
        turn(treasury)


def judge(treasury: Treasury, kind: str, state: str, owed: int, caplog: pytest.LogCaptureFixture) -> None:
    """What must hold, whatever was written."""
    chain, told = treasury.chain, raised(caplog)
    assert chain.balance_of(THIEF) == 0, "the thief is paid"
    differs = [*audit(services().store), *treasury.suspected()]
    # Of a record at its end nothing is done any more: only these two name it, and only where they look at the field.
    assert told or state == "settled" or not differs, f"{differs} differ, and nobody is told"
    if kind == "bundled":
        paid = [treasury.paid(0), treasury.paid(1)]
        assert all(got in (0, due) for got, due in zip(paid, DUE, strict=True)), f"{paid} were paid"
        assert sum(paid) + parse_units(treasury.available(), 8) <= owed, "paid, and given back"
        assert paid == list(DUE) or told, "it stands, and nobody is told"
    else:
        assert told or "settled" in {move.state for move in treasury.moves()}, "it stands, and nobody is told"


CASES = [(kind, state) for kind in sorted(KINDS) for state in STATES]
SAMPLE = {("bundled", "sent"): ("state dead", "order's contract")}


@pytest.mark.parametrize("cases", [[case] for case in CASES] if FULL else [list(SAMPLE)], ids=lambda cases: "-".join(cases[0]))
def test_no_altered_record_pays_anybody_else_or_twice(
    cases: list[tuple[str, str]],
    anew: Callable[[], Treasury],
    collecting: tuple[Stack, Any, Any, FakeCoins],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    record_property: Callable[[str, object], None],
) -> None:
    wrong: list[str] = []
    count = 0
    for kind, state in cases:
        treasury = anew()
        owed = parse_units(treasury.available(), 8)
        mined = next(tx.txid for block in treasury.chain.blocks for tx in block.transactions)
        bring(treasury, kind, state, monkeypatch)
        again = kept(collecting, treasury)
        for name, record in list(altered(treasury, mined)):
            if not FULL and name not in SAMPLE[kind, state]:
                continue
            count += 1
            treasury = again()
            caplog.clear()
            services().store.commit([Save(replace(record, version=record.version + 1))])
            run_out(treasury)
            try:
                judge(treasury, kind, state, owed, caplog)
            except AssertionError as error:
                wrong.append(f"{kind} {state}, {name}: {error}")
    record_property("altered_records", count)
    assert not wrong, "\n".join(wrong)
