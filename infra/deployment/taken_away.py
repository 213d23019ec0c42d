"""What a template takes away of a stage's stack, and when it may.

Functions of the version before run until a deploy's own have replaced them, whichever of both is the older: what an older
checkout's template lacks, newer ones need, and of a plain upgrade nobody can tell. So a deploy takes its stack to the template in
two parts: before the functions to `keeping`, behind them to the template itself. A cut between leaves more than is needed, which
the next deploy, of whichever checkout, keeps in the same way. `prepare` alone leaves the functions, and takes nothing away while
there are any; `rollback` leaves the stack as it is.

Tables, buckets and keys are never taken away: where a template does not have them, they leave the stack and stay, and a later one
brings them in again (`retained`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from infra.commands.common import CanNot
from infra.deploy import TEMPLATE, stack_name
from infra.deployment import forms, index_steps, key_stack, standing, versions
from infra.deployment.bucket import Bucket
from infra.deployment.retained import BUCKET, TABLE
from infra.deployment.stack import Given, Stack
from infra.deployment.template_nodes import KEEPING, KEY_TYPES, joined, policy_of, resources

_STAY = (TABLE, BUCKET)


@dataclass(frozen=True, slots=True)
class Way:
    """The updates that bring a stack to a template, one index of a table at a time."""

    main: Stack
    dynamodb: Any
    text: str
    stage: str
    tell: Callable[[str], None] = print

    def steps(self, keep: bool = False) -> list[str]:
        """The templates to send; `keep`: up to what functions may need that run. Raises CanNot, botocore's ClientError."""
        self._wait()
        wanted = keeping(self.main, self.text, self.stage, self._look) if keep else self.text
        return index_steps.steps(wanted, self.stage, self._look)

    def go(self, given: Given, *, keep: bool = False) -> None:
        """Send them, with these values of parameters. Raises CanNot where one is rolled back, botocore's ClientError."""
        for step in self.steps(keep):
            self.main.update(step, given)
            self._wait()

    def count(self) -> int:
        """How many there are by way of what is kept. Changes nothing. Raises CanNot, botocore's ClientError."""
        kept = keeping(self.main, self.text, self.stage, self._look)
        before, after = index_steps.wanted(kept, self.stage), index_steps.wanted(self.text, self.stage)
        removed = max(len(before[table]) - len(after[table]) for table in after)
        return len(index_steps.steps(kept, self.stage, self._look)) + (0 if kept == self.text else max(1, removed))

    def indexes(self) -> list[str]:
        """Those that come, go or change, of tables that stand. Changes nothing. Raises botocore's ClientError."""
        return [
            f"{name} of {table}"
            for table, wanted in index_steps.wanted(self.text, self.stage).items()
            if (stands := self._look(table)) is not None
            for name in sorted({index.name for index in {*wanted} ^ {*stands.indexes}})
        ]

    def _look(self, table: str) -> index_steps.Table | None:
        return index_steps.table_of(self.dynamodb, table)

    def _wait(self) -> None:
        names = index_steps.table_names(self.text, self.stage)

        def pause(seconds: float) -> None:
            self.main.demand()  # in hours the lock may be lost
            self.main.wait(seconds)

        index_steps.wait_for_tables(self.dynamodb, names, self.tell, pause)


def taken_away(main: Stack, dynamodb: Any, text: str, stage: str) -> list[str]:
    """The resources of the stack that the template does not have, and the indexes of tables that it does not have as they are.
    Keys are left out: they go to a stack of their own (`key_stack`). Changes nothing. Raises botocore's ClientError."""
    return [f"{logical} ({kind})" for logical, kind in _gone(main, text).items() if kind not in _STAY] + [
        f"index {index} of {table}"
        for table, wanted in index_steps.wanted(text, stage).items()
        if (stands := index_steps.table_of(dynamodb, table)) is not None
        for index in sorted(each.name for each in stands.indexes if each not in wanted)
    ]


def let_go(main: Stack, text: str) -> list[str]:
    """Those that leave the stack and stay. Changes nothing. Raises botocore's ClientError."""
    return [f"{logical} ({kind})" for logical, kind in _gone(main, text).items() if kind in _STAY]


def keeping(main: Stack, text: str, stage: str, look: Callable[[str], index_steps.Table | None]) -> str:
    """The template, with all that its stack holds beside, and the indexes that tables have beside: functions that run may need it.
    `look` finds a table by its name.

    Raises CanNot where a table or a bucket would be deleted with its place in the stack, or an index is another one under its name;
    botocore's ClientError.
    """
    gone = _gone(main, text)
    before = main.template() if gone else text
    if lost := [name for name, kind in gone.items() if kind in _STAY and policy_of(before, name) not in KEEPING]:
        raise CanNot(
            f"the stack {main.name} would delete {', '.join(lost)}, which infra/{TEMPLATE.name} of this checkout does not have:"
            " deploy the checkout that made it, or give it the DeletionPolicy Retain there first. Nothing was changed"
        )
    return index_steps.keeping(joined(text, before, gone) if gone else text, stage, look)


def demand_nothing_taken(session: Any, bucket: Bucket, stage: str) -> None:
    """Raises CanNot where this checkout does not read what is stored, or where functions stand and its template takes something
    away; botocore's ClientError."""
    forms.demand_stored_read(stage, versions.fetch(bucket, stage))
    if not standing.function_names(session.client("lambda"), stage):
        return
    main, keys = (Stack(session.client("cloudformation"), bucket, name) for name in (stack_name(stage), key_stack.name_of(stage)))
    text = TEMPLATE.read_text()
    gone = {
        TEMPLATE.name: [*let_go(main, text), *taken_away(main, session.client("dynamodb"), text, stage)],
        key_stack.KEYS.name: key_stack.taken_away(keys, key_stack.KEYS.read_text()),
    }
    if said := [f"infra/{file} of this checkout takes away {', '.join(lost)}" for file, lost in gone.items() if lost]:
        raise CanNot(
            f"{'; '.join(said)}, which functions that stand may need: prepare from the checkout that made the stack, or deploy this"
            " one. Nothing was changed"
        )


def _gone(main: Stack, text: str) -> dict[str, str]:
    """The types of what the stack holds and the template does not have, but for keys, by logical id."""
    held, known = main.holds(), resources(text)
    return {logical: kind for logical, kind in sorted(held.items()) if logical not in known and kind not in KEY_TYPES}
