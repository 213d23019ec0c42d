"""The forms of stored records: those that a version reads, and those that its functions write. No function may run that does not
read what another one writes: `deploy` and `rollback` see to it by what the bucket remembers of each version (`versions`).

A form is either one that a setting turns on, or `<kind> <number>` (`chalicelib.store.schema.Kind.understands` and `writes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chalicelib.settings import Settings
from chalicelib.store.schema import RECORDS
from chalicelib.usecases.recovery.deposit_migration import PROGRESS
from infra.commands.common import CanNot
from infra.deployment.standing import Function
from infra.deployment.versions import Version, Versions
from infra.stage_settings import of_stage

SWITCHED = {
    "PACKED_RECORDS": "packed_records",
    "SHORT_RECORDS": "short_records",
    "ONE_ITEM_OUTBOX": "one_item_outbox",
    "LOOKOUTS": "lookouts",
    "ARCHIVE_AFTER_DAYS": "archive_after_days",
}
"""Settings, with their names in `Settings`. All versions from 0.1.0 on read what they turn on."""
OFF = frozenset({None, "", "off", "0"})
STAY = frozenset({"PACKED_RECORDS", "SHORT_RECORDS", "ARCHIVE_AFTER_DAYS"})
"""Those whose records stay in the tables once the setting is off: events for 30 days, payments and stubs for good. What the other
two write is worked off within minutes."""
MIGRATED = (PROGRESS,)
"""The migrations whose outcome functions of this checkout write by themselves."""


def read_here() -> tuple[str, ...]:
    """The forms that this checkout reads."""
    numbered = (f"{name} {number}" for name, kind in RECORDS.items() for number in range(1, kind.understands + 1))
    return (*SWITCHED, *numbered)


def written_here() -> tuple[str, ...]:
    """The forms that this checkout writes whatever the settings say."""
    return tuple(f"{name} {kind.writes}" for name, kind in RECORDS.items() if kind.writes)


def switched_on(stage: str, variables: Mapping[str, str]) -> set[str]:
    """The forms that functions of this version write with these settings. Raises CanNot for a wrong setting."""
    try:
        with of_stage(stage, {name: variables[name] for name in SWITCHED if name in variables}):
            settings = Settings.from_environment()
    except ValueError as error:
        raise CanNot(f"a setting of stage {stage} is not allowed: {error}") from error
    return {name for name, field in SWITCHED.items() if getattr(settings, field)}


def demand_readers(stage: str, known: Versions, functions: Iterable[Function], wanted: Mapping[str, str]) -> None:
    """Raises CanNot where this checkout does not read a form that is stored already, a setting is wrong, or a deploy of it with the
    settings `wanted` would write one that a function which still runs does not read."""
    demand_stored_read(stage, known)
    after, news = switched_on(stage, wanted) | set(written_here()), set[str]()
    for function in functions:
        news |= after - _said(function) - set(_of_code(known, function.version).reads)
    if news:
        raise CanNot(
            f"functions of stage {stage} run a version that does not read what {_list(news)} would write: deploy with that"
            f" {_off(news)} (a release before, for one that is no setting), and once more with it on"
        )


def demand_stored_read(stage: str, known: Versions) -> None:
    """Raises CanNot where this checkout does not read a form that is stored already."""
    if unread := set(known.written) - set(read_here()):
        raise CanNot(
            f"this checkout does not read what {_list(unread)} has written on stage {stage}, which stays: check out the version"
            f" that{_newest(known)}, or a later one, and deploy that. Nothing was changed"
        )


def older_ran(known: Versions, functions: Iterable[Function]) -> bool:
    """Whether functions that run, or after a `delete` those that ran last, leave records to a migration of this checkout."""
    running = {function.version for function in functions} or {each.code for each in known.known[-1:]}
    return any(set(MIGRATED) - set(_of_code(known, code).migrated) for code in running)


def demand_reads(stage: str, known: Versions, functions: Iterable[Function], target: Version) -> None:
    """Raises CanNot where `target` does not read what functions write now, or what they wrote and is still there."""
    on = {name for function in functions for name in _writes(stage, known, function)}
    there = set(known.written) - (SWITCHED.keys() - STAY)
    if off := (on - STAY) - set(target.reads):
        raise CanNot(
            f"{_version(target)} does not read what {_list(off)} writes: set that to off, deploy, wait until the outbox is empty"
            " and no webhook is due, and go back then"
        )
    if stays := ((on & STAY) | there) - set(target.reads):
        raise CanNot(f"{_version(target)} does not read what {_list(stays)} has written, which stays: deploy a version that does")


def _of_code(known: Versions, code: str) -> Version:
    """The version with this code. Code that is not known is of a deploy that did not come to its end, or of a plain
    `chalice deploy`, behind the newest that is known."""
    newest = known.known[-1] if known.known else Version(code, "", {})
    return next((each for each in known.known if each.code == code), newest)


def _newest(known: Versions) -> str:
    return f" was deployed {known.known[-1].at}" if known.known else " was deployed last"


def _said(function: Function) -> set[str]:
    """The forms that a function's settings name: it would not start if it did not know them."""
    return {name for name in SWITCHED if function.settings.get(name) not in OFF}


def _writes(stage: str, known: Versions, function: Function) -> set[str]:
    """The forms that a function writes by its settings; where those are silent, those that its version reads at least."""
    return switched_on(stage, function.settings) & (set(_of_code(known, function.version).reads) | _said(function))


def _version(target: Version) -> str:
    return f"the version to go back to, {target.code} of {target.at},"


def _off(forms: Iterable[str]) -> str:
    """What turns these settings off."""
    said = {"0" if form == "ARCHIVE_AFTER_DAYS" else "off" for form in forms}
    return "0" if said == {"0"} else "off (ARCHIVE_AFTER_DAYS: 0)" if "0" in said else "off"


def _list(forms: Iterable[str]) -> str:
    return ", ".join(sorted(forms))
