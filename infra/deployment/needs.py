"""What the functions of a version may need of their stage's stack. `rollback` leaves that as it is: a version whose template has
what was taken away since does not come back by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from infra.deployment import index_steps, versions
from infra.deployment.bucket import Bucket
from infra.deployment.template_nodes import resources, type_of
from infra.deployment.versions import Version

_ALARM = "(AWS::CloudWatch::Alarm)"
"""No function needs one."""


def of_template(text: str, stage: str) -> list[str]:
    """All that a template has, in the words of `taken_away`."""
    indexes = ((table, index) for table, wanted in index_steps.wanted(text, stage).items() for index in wanted)
    return [f"{logical} ({type_of(resource)})" for logical, resource in resources(text).items()] + [
        f"index {index.name} of {table}" for table, index in indexes
    ]


def note_gone(bucket: Bucket, stage: str, gone: Iterable[str], *, deployed: bool = True) -> None:
    """Remember with each version what is about to be taken away of what it may need, before it is. `deployed`: the newest is, with
    the template that takes it away; `prepare` does it where no function stands. Safe to repeat. Raises botocore's ClientError."""
    if not (lost := {each for each in gone if not each.endswith(_ALARM)}):
        return
    before = versions.fetch(bucket, stage)
    others = before.known[:-1] if deployed else before.known
    after = (*(_without(each, lost) for each in others), *before.known[len(others) :])
    if after != before.known:
        versions.store(bucket, stage, replace(before, known=after))


def _without(version: Version, lost: set[str]) -> Version:
    """Of one that was kept before `needs` were nobody knows."""
    mine = lost & set(version.needs) if version.needs else lost
    return replace(version, lacks=sorted({*version.lacks, *mine})) if mine else version
