"""Records in a state that only a newer version of the service knows: they are left to that version, and others go on.

The store refuses to save them and to close their work. What is sent without saving anything asks here first.
"""

from __future__ import annotations

import logging
from typing import Any

from chalicelib.domain.versions import newer_state
from chalicelib.usecases.ports.failures import TooNew

log = logging.getLogger(__name__)


def demand_known(*records: Any) -> None:
    """Raises TooNew, with an alarm, where one of `records` is in a state that only a newer version knows. None is no record."""
    for record in records:
        state = None if record is None else newer_state(record)
        if state is not None:
            what = f"{type(record).__name__} {record.id}"
            log.error("ALARM the %s needs a newer version of the service: it has the state %s", what, state)
            raise TooNew(f"the {what} has the state {state}, which this version does not know")
