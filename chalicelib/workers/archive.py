"""The archive, every five minutes: old settled payments leave the tables, realm by realm. Nothing where it is off."""

from __future__ import annotations

import logging
import time
from functools import partial

from chalicelib.domain.ids import Realm
from chalicelib.usecases.base.retries import Each
from chalicelib.wiring import services

log = logging.getLogger(__name__)

SECONDS = 240.0
"""How long one run may begin new pages; each ends well within the function's 300 seconds."""


def run() -> None:
    """One realm's failure does not keep the other from going on. Raises `Failures` at the end."""
    wired = services()
    if not wired.settings.archive_after_days or (wired.settings.stage == "demo" and wired.demo_resets.busy()):
        return
    until = time.monotonic() + SECONDS
    realms = wired.settings.realms
    with Each("archive") as each:
        for left, realm in zip(range(len(realms), 0, -1), realms, strict=True):
            each.take(realm, partial(_round, realm, time.monotonic() + (until - time.monotonic()) / left))


def _round(realm: Realm, until: float) -> None:
    wired = services()
    archived = wired.archive_rounds(realm).work(lambda: time.monotonic() < until)
    if archived:
        log.info("%s: %d payments went to the archive", realm, archived)
