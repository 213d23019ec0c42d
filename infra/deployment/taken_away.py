"""What a template takes away of a stage's stack, and when it may.

A release takes an index, a queue or an alarm away one release after its last use. So its deploy may take it away: neither its
functions nor those of the release before need it. What an older checkout's deploy would take away, running functions may need until
theirs replace them: the plan says it, and `rollback` leaves the stack as it is. `prepare` alone leaves the functions, and takes
nothing away while there are any.
"""

from __future__ import annotations

from typing import Any

from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, stack_name
from infra.deployment import forms, index_steps, standing, versions
from infra.deployment.bucket import Bucket
from infra.deployment.stack import Stack
from infra.deployment.template_nodes import KEY_TYPES, resources


def taken_away(main: Stack, dynamodb: Any, text: str, stage: str) -> list[str]:
    """The resources of the stack that the template does not have, and the indexes of tables that it does not have as they are.
    Keys are left out: they go to a stack of their own (`key_stack`). Changes nothing. Raises botocore's ClientError."""
    held = main.holds() if main.state() else {}
    known = resources(text)
    gone = [f"{logical} ({kind})" for logical, kind in held.items() if logical not in known and kind not in KEY_TYPES]
    return sorted(gone) + [
        f"index {index} of {table}"
        for table, wanted in index_steps.wanted(text, stage).items()
        if (stands := index_steps.table_of(dynamodb, table)) is not None
        for index in sorted(each.name for each in stands.indexes if each not in wanted)
    ]


def demand_nothing_taken(session: Any, bucket: Bucket, stage: str) -> None:
    """Raises CanNot where this checkout does not read what is stored, or where functions stand and its template takes something
    away; botocore's ClientError."""
    forms.demand_stored_read(stage, versions.fetch(bucket, stage))
    if not standing.function_names(session.client("lambda"), stage):
        return
    main = Stack(session.client("cloudformation"), bucket, stack_name(stage))
    if gone := taken_away(main, session.client("dynamodb"), TEMPLATE.read_text(), stage):
        raise CanNot(
            f"infra/{TEMPLATE.name} of this checkout takes away {', '.join(gone)}, which functions that stand may"
            " need: prepare from the checkout that made the stack, or deploy this one. Nothing was changed"
        )
