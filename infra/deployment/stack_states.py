"""The state a stack is in: what is waited for, what an update takes, what has to go first, and what only the operator can mend.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from infra.commands.common import CanNot

Wait = Callable[[float], None]

STANDS = (
    "CREATE_COMPLETE",
    "UPDATE_COMPLETE",
    "UPDATE_ROLLBACK_COMPLETE",
    "IMPORT_COMPLETE",
    "IMPORT_ROLLBACK_COMPLETE",
    "UPDATE_FAILED",  # only with rollback disabled: the next update goes on
)
"""States in which a stack takes an update."""
_CONTINUE = "look at its events, mend what they name, then: aws cloudformation continue-update-rollback --stack-name {name}"
# A protected stack is not deleted, and those of prod are.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html
_DELETES = (
    "aws cloudformation update-termination-protection --no-enable-termination-protection --stack-name {name}, then"
    " aws cloudformation delete-stack --stack-name {name}"
)
_DELETE = (
    "look at its events and at what it still holds (aws cloudformation list-stack-resources --stack-name {name}); with nothing in"
    f" it: {_DELETES}"
)
STUCK = {
    "UPDATE_ROLLBACK_FAILED": _CONTINUE,
    # ContinueUpdateRollback is documented for UPDATE_ROLLBACK_FAILED alone:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ContinueUpdateRollback.html
    "IMPORT_ROLLBACK_FAILED": "look at its events; AWS documents no call that goes on. Where the stack is deleted, what is money"
    " stays (DeletionPolicy); queues with their messages, and log groups, go, where it holds any: "
    f"{_DELETES}, and this command brings it in again",
    "CREATE_FAILED": _DELETE,
    "ROLLBACK_FAILED": _DELETE,
    "DELETE_FAILED": _DELETE,
    "REVIEW_IN_PROGRESS": "a change set was made for it by hand and never executed: execute it, or delete the stack, which is"
    " empty: aws cloudformation delete-stack --stack-name {name}",
}
"""States that no update ends, and what to do."""
CHANGE_SET = "gateway-brings-back"
"""The name of our change sets, which import what stands already."""
_STARTS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "IMPORT_IN_PROGRESS", "DELETE_IN_PROGRESS")
_STEP = 5.0  # seconds
_STEPS = 720  # an hour


def settled(formation: Any, name: str, wait: Wait = time.sleep) -> str | None:
    """The state of a stack once nothing is under way; None where there is none. Raises CanNot after an hour, ClientError."""
    for _ in range(_STEPS):
        state = state_of(formation, name)
        if state is None or not state.endswith("_IN_PROGRESS") or state in STUCK:
            return state
        wait(_STEP)
    raise CanNot(f"the stack {name} is {state} for an hour now: look at its events, and run this again when it has ended")


def takes_update(formation: Any, name: str, wait: Wait = time.sleep) -> bool:
    """Whether the stack stands, once nothing is under way. A stack that could not be made is taken away first: it takes no update.

    Raises CanNot for a state that the operator has to end; botocore's ClientError.
    """
    state = settled(formation, name, wait)
    if state == "REVIEW_IN_PROGRESS":
        if change_set_waits(formation, name, wait) and state_of(formation, name) == "REVIEW_IN_PROGRESS":
            formation.delete_stack(StackName=name)  # it never was more than the name of the change set
        state = settled(formation, name, wait)
    if state == "ROLLBACK_COMPLETE":
        _take_away(formation, name, wait)
        return False
    if state is not None and state not in STANDS:
        raise CanNot(f"the stack {name} is {state}: {STUCK.get(state, 'look at its events').format(name=name)}")
    return state is not None


def demand(formation: Any, name: str, wanted: str, wait: Wait = time.sleep) -> None:
    """Wait until the stack is `wanted`. Raises CanNot with what CloudFormation said, and what to do, where it ends otherwise."""
    state = settled(formation, name, wait)
    if state != wanted:
        then = STUCK.get(state or "", "mend that, and run this again").format(name=name)
        raise CanNot(f"the stack {name} is {state}: {_first_failure(formation, name)}; {then}")


def state_of(formation: Any, name: str) -> str | None:
    """The state of a stack, None where there is none. Raises botocore's ClientError."""
    try:
        (stack,) = formation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if is_missing(error):
            return None
        raise
    return str(stack["StackStatus"])


def is_missing(error: ClientError) -> bool:
    """Whether CloudFormation says that there is no such stack: it has no code of its own for this."""
    return "does not exist" in error.response["Error"]["Message"]


def change_set_waits(formation: Any, name: str, wait: Wait = time.sleep) -> bool:
    """Whether our change set of a deploy that was cut is there, and was not executed. What is under way is waited for. Raises
    ClientError.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeChangeSet.html
    """
    for _ in range(_STEPS):
        try:
            found = formation.describe_change_set(StackName=name, ChangeSetName=CHANGE_SET)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("ChangeSetNotFound", "ChangeSetNotFoundException"):
                raise
            return False
        if found.get("ExecutionStatus") != "EXECUTE_IN_PROGRESS" and not found["Status"].endswith(("_PENDING", "_IN_PROGRESS")):
            return bool(found.get("ExecutionStatus") != "EXECUTE_COMPLETE")
        wait(_STEP)
    raise CanNot(f"the change set {CHANGE_SET} of the stack {name} is under way for an hour now: run this again when it has ended")


def _take_away(formation: Any, name: str, wait: Wait) -> None:
    """Delete a stack whose making was rolled back, unless something of it was kept.

    Its resources are gone (RetainExceptOnCreate); one that was kept would be left behind without a stack.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    pages = formation.get_paginator("list_stack_resources").paginate(StackName=name)
    every = [each for page in pages for each in page["StackResourceSummaries"]]
    kept = [f"{r['LogicalResourceId']} {r['PhysicalResourceId']}" for r in every if _is_there(r)]
    if kept:
        raise CanNot(
            f"the stack {name} could not be made, and still holds {', '.join(kept)}: look at each before you delete the stack"
        )
    formation.update_termination_protection(StackName=name, EnableTerminationProtection=False)
    formation.delete_stack(StackName=name)
    if (state := settled(formation, name, wait)) is not None:
        raise CanNot(f"the stack {name} is {state} and can not be deleted: {_first_failure(formation, name)}")


def _is_there(resource: dict[str, Any]) -> bool:
    """A resource that was never made has no id of its own."""
    return bool(resource.get("PhysicalResourceId")) and resource["ResourceStatus"] != "DELETE_COMPLETE"


def _first_failure(formation: Any, name: str) -> str:
    """Why, as the first failure since the last start says it: the later ones are its consequences. A page of events is less than
    a rollback writes: two for each resource.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackEvents.html
    """
    reason = "look at its events"
    pages = formation.get_paginator("describe_stack_events").paginate(StackName=name)
    for event in (event for page in pages for event in page["StackEvents"]):  # newest first
        if event["ResourceStatus"].endswith("_FAILED") and event.get("ResourceStatusReason"):
            reason = f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        if event["LogicalResourceId"] == name and event["ResourceStatus"] in _STARTS:
            break
    return reason
