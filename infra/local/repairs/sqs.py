"""moto's SQS, made safe for threads: the local stack sends from requests while its pump receives and deletes."""

from __future__ import annotations

import threading
from functools import wraps
from types import SimpleNamespace
from typing import Any

from moto.sqs.models import Message, Queue, SQSBackend

from infra.local import recursion

LOCK = threading.RLock()
"""Held while a queue changes, and by whoever looks at its messages directly."""
_state = SimpleNamespace(installed=False)


def repair_sqs() -> None:
    """moto's DeleteMessage builds a new list of messages and puts it in the old one's place: a message that is sent meanwhile
    goes into the old list and is lost. One lock round everything that changes a queue. ReceiveMessage is left out, since it
    waits; the pump receives through `infra.local.queues`, which takes the lock. moto also keeps every message that was ever
    sent, for its dashboard; here it does not. And each message that is sent is marked for `infra.local.recursion`. May be called
    again.
    """
    if _state.installed:
        return
    _state.installed = True
    Queue.add_message = _marked(Queue.add_message)  # type: ignore[method-assign]
    for owner, name in ((Queue, "add_message"), (Queue, "delete_message"), (SQSBackend, "change_message_visibility")):
        setattr(owner, name, _locked(getattr(owner, name)))
    Message.__new__ = lambda cls, *_, **__: object.__new__(cls)  # type: ignore[method-assign]


def _marked(original: Any) -> Any:
    @wraps(original)
    def marked(queue: Queue, message: Message) -> Any:
        recursion.mark(message)
        return original(queue, message)

    return marked


def _locked(original: Any) -> Any:
    @wraps(original)
    def locked(*args: Any, **kwargs: Any) -> Any:
        with LOCK:
            return original(*args, **kwargs)

    return locked
