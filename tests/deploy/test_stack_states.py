"""What becomes of a stack that was cut, rolled back or is being changed. moto's are always complete: these states are played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from infra.commands.common import CanNot
from infra.deployment import stack_states
from infra.deployment.stack_states import STANDS, STUCK, demand, takes_update

NAME = "gateway-prod"


class Formation:
    """CloudFormation with one stack, which goes through `states`; the last stays. An empty one: there is no stack."""

    def __init__(self, *states: str, resources: Any = (), events: Any = (), change_sets: Any = ()) -> None:
        self.change_sets = list(change_sets)
        self.states, self.resources, self.events = list(states), resources, events
        self.calls: list[str] = []

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if not state:
            error = {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}
            raise ClientError({"Error": error}, "DescribeStacks")  # type: ignore[typeddict-item]
        return {"Stacks": [{"StackStatus": state}]}

    def get_paginator(self, operation: str) -> Any:
        pages: list[Any] = [{"StackResourceSummaries": self.resources}]
        if operation == "describe_stack_events":
            pages = [{"StackEvents": self.events[first : first + 100]} for first in range(0, len(self.events), 100)]
        return SimpleNamespace(paginate=lambda StackName: pages)

    def describe_stack_events(self, StackName: str) -> dict[str, Any]:
        return {"StackEvents": self.events[:100], "NextToken": "more"}

    def describe_change_set(self, StackName: str, ChangeSetName: str) -> dict[str, Any]:
        if self.change_sets:
            found = self.change_sets[0] if len(self.change_sets) == 1 else self.change_sets.pop(0)
            return (
                {"Status": "CREATE_COMPLETE", "ExecutionStatus": found}
                if "EXECUTE" in found
                else {"Status": found, "ExecutionStatus": "AVAILABLE"}
            )
        raise ClientError({"Error": {"Code": "ChangeSetNotFound", "Message": "gone"}}, "DescribeChangeSet")

    def update_termination_protection(self, StackName: str, EnableTerminationProtection: bool) -> None:
        assert not EnableTerminationProtection
        self.calls.append("unprotected")

    def delete_stack(self, StackName: str) -> None:
        self.calls.append("deleted")


def no_wait(seconds: float) -> None:
    """Time passes."""


@pytest.mark.parametrize("state", STANDS)
def test_a_stack_that_stands_takes_an_update(state: str) -> None:
    assert takes_update(Formation(state), NAME, no_wait) is True


def test_where_there_is_none_one_is_made() -> None:
    assert takes_update(Formation(""), NAME, no_wait) is False


@pytest.mark.parametrize(
    "state",
    ["CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"],
)
def test_what_is_under_way_is_waited_for(state: str) -> None:
    """A cut ends the command, not what CloudFormation does."""
    waited: list[float] = []
    assert takes_update(Formation(state, state, "UPDATE_ROLLBACK_COMPLETE"), NAME, waited.append) is True
    assert len(waited) == 2


def test_one_that_could_not_be_made_goes_first() -> None:
    """Termination protection is on where money is real; of the stack nothing is left to protect."""
    gone = {"LogicalResourceId": "LedgerTable", "PhysicalResourceId": "gateway-prod-ledger", "ResourceStatus": "DELETE_COMPLETE"}
    never = {"LogicalResourceId": "WorkTable", "ResourceStatus": "CREATE_FAILED"}
    formation = Formation("ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS", "", resources=[gone, never])
    assert takes_update(formation, NAME, no_wait) is False
    assert formation.calls == ["unprotected", "deleted"]


def test_one_that_still_holds_something_stays() -> None:
    kept = {"LogicalResourceId": "LedgerTable", "PhysicalResourceId": "gateway-prod-ledger", "ResourceStatus": "DELETE_SKIPPED"}
    formation = Formation("ROLLBACK_COMPLETE", resources=[kept])
    with pytest.raises(CanNot, match="still holds LedgerTable gateway-prod-ledger"):
        takes_update(formation, NAME, no_wait)
    assert formation.calls == []


def test_a_stack_that_is_only_our_change_set_goes_first() -> None:
    """A deploy was cut before it executed the import. What is being made is waited for."""
    formation = Formation(
        *["REVIEW_IN_PROGRESS"] * 2, "DELETE_IN_PROGRESS", "", change_sets=["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]
    )
    waited: list[float] = []
    assert takes_update(formation, NAME, waited.append) is False
    assert formation.calls == ["deleted"] and len(waited) == 2


def test_one_whose_import_is_under_way_is_waited_for() -> None:
    formation = Formation("REVIEW_IN_PROGRESS", "IMPORT_IN_PROGRESS", "IMPORT_COMPLETE")
    assert takes_update(formation, NAME, no_wait) is True
    assert formation.calls == []


@pytest.mark.parametrize("ended", ["EXECUTE_COMPLETE", "AVAILABLE"])
def test_one_that_has_taken_in_keys_since_it_was_looked_at_is_not_deleted(ended: str) -> None:
    formation = Formation("REVIEW_IN_PROGRESS", "IMPORT_COMPLETE", change_sets=["EXECUTE_IN_PROGRESS", ended])
    assert takes_update(formation, NAME, no_wait) is True
    assert formation.calls == []


@pytest.mark.parametrize("state", STUCK)
def test_of_a_state_that_no_update_ends_it_says_what_to_do(state: str) -> None:
    formation = Formation(state)
    with pytest.raises(CanNot, match=f"{NAME} is {state}: ") as told:
        takes_update(formation, NAME, no_wait)
    assert "{" not in str(told.value) and formation.calls == []
    assert ways(str(told.value)) == WAYS.get(state, ["unprotect", "delete"])
    if state == "IMPORT_ROLLBACK_FAILED":
        assert "queues with their messages, and log groups, go" in str(told.value)


WAYS = {"UPDATE_ROLLBACK_FAILED": ["continue"], "REVIEW_IN_PROGRESS": ["delete"]}


def ways(said: str) -> list[str]:
    """The commands that a message names, in their order. prod's stacks are protected, and are not deleted before that goes.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html
    """
    commands = {
        f"aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name {NAME}": "unprotect",
        f"aws cloudformation delete-stack --stack-name {NAME}": "delete",
        f"aws cloudformation continue-update-rollback --stack-name {NAME}": "continue",
    }
    return [commands[each] for each in sorted(commands, key=said.find) if each in said]


@pytest.mark.parametrize("state", STUCK)
def test_a_change_that_ends_stuck_says_what_to_do_at_once(state: str) -> None:
    """With the reason; not only when the command is run again."""
    failed = {"LogicalResourceId": "WorkTable", "ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": "refused"}
    with pytest.raises(CanNot, match=f"{NAME} is {state}: WorkTable: refused; ") as told:
        demand(Formation(state, events=[failed]), NAME, "UPDATE_COMPLETE", no_wait)
    assert ways(str(told.value)) == WAYS.get(state, ["unprotect", "delete"])


def test_a_change_that_was_rolled_back_is_tried_again() -> None:
    failed = {"LogicalResourceId": "WorkTable", "ResourceStatus": "UPDATE_FAILED", "ResourceStatusReason": "refused"}
    with pytest.raises(CanNot, match="WorkTable: refused; mend that, and run this again"):
        demand(Formation("UPDATE_ROLLBACK_COMPLETE", events=[failed]), NAME, "UPDATE_COMPLETE", no_wait)


def event(what: str, state: str, reason: str = "") -> dict[str, str]:
    return {"LogicalResourceId": what, "ResourceStatus": state, "ResourceStatusReason": reason}


def test_the_first_failure_is_told_behind_a_long_rollback() -> None:
    """Rolling back writes two events of each resource, more than a page has."""
    events = [
        event(NAME, "ROLLBACK_COMPLETE"),
        *(event(f"Queue{n}", state) for n in range(75) for state in ("DELETE_COMPLETE", "DELETE_IN_PROGRESS")),
        event(NAME, "ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: [Topic]"),
        event("Topic", "CREATE_FAILED", "no such topic"),
        event(NAME, "CREATE_IN_PROGRESS", "User Initiated"),
    ]
    with pytest.raises(CanNot, match="ROLLBACK_COMPLETE: Topic: no such topic"):
        demand(Formation("ROLLBACK_COMPLETE", events=events), NAME, "CREATE_COMPLETE", no_wait)


def test_a_failure_of_an_earlier_run_is_not_told() -> None:
    events = [
        event(NAME, "IMPORT_ROLLBACK_COMPLETE"),
        event(NAME, "IMPORT_IN_PROGRESS", "User Initiated"),
        event("ChainTable", "UPDATE_FAILED", "of last week"),
    ]
    with pytest.raises(CanNot, match="IMPORT_ROLLBACK_COMPLETE: look at its events"):
        demand(Formation("IMPORT_ROLLBACK_COMPLETE", events=events), NAME, "IMPORT_COMPLETE", no_wait)


def test_the_first_failure_of_the_last_run_is_told() -> None:
    events = [
        event(NAME, "UPDATE_ROLLBACK_COMPLETE"),
        event("WorkTable", "UPDATE_FAILED", "Resource update cancelled"),
        event("LedgerTable", "UPDATE_FAILED", "only one index at a time"),
        event(NAME, "UPDATE_IN_PROGRESS", "User Initiated"),
        event("ChainTable", "UPDATE_FAILED", "of last week"),
    ]
    with pytest.raises(CanNot, match="UPDATE_ROLLBACK_COMPLETE: LedgerTable: only one index at a time"):
        demand(Formation("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", events=events), NAME, "UPDATE_COMPLETE", no_wait)
    demand(Formation("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), NAME, "CREATE_COMPLETE", no_wait)


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_states, "_STEPS", 3)
    with pytest.raises(CanNot, match="UPDATE_IN_PROGRESS for an hour"):
        takes_update(Formation("UPDATE_IN_PROGRESS"), NAME, no_wait)
