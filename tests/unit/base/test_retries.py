"""Retries after a Conflict: while a new decision may help, and no longer."""

from __future__ import annotations

import pytest

from chalicelib.domain.ids import NetworkId
from chalicelib.domain.work import Work
from chalicelib.usecases.base import retries
from chalicelib.usecases.base.retries import TRIES, until_settled
from chalicelib.usecases.ports.changes import AtEpoch, Change, Close, Conflict

WORK = Work("expiry", "test:ethereum", "1", "mch_1:test|inv_1")
OTHER = Work("expiry", "test:ethereum", "1", "mch_1:test|inv_2")


@pytest.mark.parametrize(
    ("change", "tries"),
    [(None, TRIES), (Close(OTHER), TRIES), (Close(WORK), 1), (AtEpoch(NetworkId("test:ethereum"), 1), 1)],
)
def test_a_conflict_that_no_retry_changes_is_raised_at_once(
    change: Change | None, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has closed the work, or a reorganisation was followed."""
    slept: list[float] = []
    monkeypatch.setattr(retries.time, "sleep", slept.append)
    asked: list[int] = []

    def decide() -> None:
        asked.append(1)
        raise Conflict(change)

    with pytest.raises(Conflict):
        until_settled(decide, of=WORK)
    assert (len(asked), len(slept)) == (tries, tries - 1)


def test_a_decision_that_fits_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries.time, "sleep", lambda _: None)
    answers: list[str | Conflict] = [Conflict(None), Conflict(Close(OTHER)), "done"]

    def decide() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Conflict):
            raise answer
        return answer

    assert until_settled(decide, of=WORK) == "done"
