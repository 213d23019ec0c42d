"""The activity record of a request goes with its first commit, once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chalicelib.domain.ids import TenantId
from chalicelib.domain.merchants.activity import Activity
from chalicelib.usecases.base import activity
from chalicelib.usecases.ports.changes import Change, Conflict, Save

RECORD = Activity("act_1", TenantId("mch_1:test"), "key_1", "n", "sk_test_abcd", "POST", "/x", "r-1", 1, 2)


class Log:
    """Commits, and what each of them raises."""

    def __init__(self, *errors: Exception | None) -> None:
        self.made: list[list[Any]] = []
        self.errors = list(errors)

    def __call__(self, changes: Sequence[Change]) -> None:
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        self.made.append([getattr(change, "record", change) for change in changes])


def a_change(name: str) -> Change:
    return Save(name)


def test_the_first_commit_takes_it_along_and_no_other() -> None:
    log = Log()
    activity.committed(log, [a_change("before")])
    with activity.recording(RECORD):
        with activity.aside():
            activity.committed(log, [a_change("aside")])
        activity.committed(log, [a_change("first")])
        activity.committed(log, [a_change("second")])
    activity.committed(log, [a_change("after")])
    assert log.made == [["before"], ["aside"], ["first", RECORD], ["second"], ["after"]]


def test_a_refused_commit_leaves_it_for_the_next() -> None:
    log, refused = Log(Conflict(None)), a_change("refused")
    with activity.recording(RECORD):
        activity.made("made_1")
        with pytest.raises(Conflict):
            activity.committed(log, [refused])
        activity.made("made_2")
        activity.committed(log, [a_change("again")])
    ((_, record),) = log.made
    assert (record.object_id, record.made_id) == ("made_2", None)


def test_where_it_is_stored_already_the_changes_are_committed_alone() -> None:
    """The answer about an earlier commit was lost, and the use case goes on."""
    made: list[list[Any]] = []

    def commit(changes: Sequence[Change]) -> None:
        stored = [change for change in changes if isinstance(change, Save) and change.record == RECORD]
        if stored:
            raise Conflict(stored[0])
        made.append(list(changes))

    with activity.recording(RECORD):
        activity.committed(commit, [a_change("next")])
    assert made == [[a_change("next")]]


def test_another_change_of_the_same_content_is_no_excuse() -> None:
    """Only a conflict about the record itself says that it is stored."""
    log = Log(Conflict(a_change("other")))
    with activity.recording(RECORD), pytest.raises(Conflict):
        activity.committed(log, [a_change("other")])
    assert log.made == []
