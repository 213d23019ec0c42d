"""Takes away the queue mappings of a stage that are too many: doubled ones, and those of queues that app.py does not name any more.

Lambda refuses a second mapping of a queue and a function, but takes one for each way to name the function. A mapping stays when its
function is deleted.
https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from infra.deployment.adopt import kept
from infra.deployment.patience import patiently
from infra.deployment.record import Resource
from infra.deployment.standing import QueueMapping, Standing
from infra.mappings import IN_USE, TRIES, Consumer

_WAIT_SECONDS = 3.0


def too_many(wanted: Sequence[Consumer], found: Standing, recorded: Sequence[Resource]) -> list[QueueMapping]:
    """The mappings that nobody wants, of all that a stage has. Those of a function that stands and is not app.py's stay."""
    known, stays = {each["name"]: each for each in recorded}, set()
    for consumer in wanted:
        mine = [each for each in found.mappings if (each.function, each.queue) == (consumer.function, consumer.queue)]
        if mine:
            stays.add(kept(mine, consumer.queue, known).uuid)
    others = found.functions.keys() - {consumer.function for consumer in wanted}
    return [each for each in found.mappings if each.uuid not in stays and each.function not in others]


def take_away(client: Any, mappings: Sequence[QueueMapping], wait: Callable[[float], None] = time.sleep) -> None:
    """Delete these mappings; messages that they brought are brought by the one that stays. Raises botocore's ClientError."""
    for each in mappings:
        _delete(client, each.uuid, wait)


def _delete(client: Any, uuid: str, wait: Callable[[float], None]) -> None:
    with contextlib.suppress(client.exceptions.ResourceNotFoundException):
        patiently(partial(client.delete_event_source_mapping, UUID=uuid), IN_USE, partial(wait, _WAIT_SECONDS), TRIES)
