"""Resolution of a host's name to addresses that may be connected to. Connects to nothing itself."""

from __future__ import annotations

import queue
import socket
import threading

from chalicelib.domain.webhooks.urls import is_allowed


class NotAllowed(Exception):
    """The name resolves to an internal address: nothing may be sent there."""


class NotFound(Exception):
    """The name does not resolve, or not in time."""


def addresses(host: str, port: int, *, seconds: float, allow_private: bool) -> list[str]:
    """The addresses of `host`, in the order to try them, each checked: connect to these and do not resolve again.

    One that is not allowed spoils all of them: a name that mixes the two is made to deceive. `allow_private` lets every address
    pass but link-local and metadata ones. Raises NotAllowed, and NotFound after `seconds` at the latest.
    """
    found = lookup(host, port, seconds)
    if not all(is_allowed(address, allow_private=allow_private) for address in found):
        raise NotAllowed
    return found


def lookup(host: str, port: int, seconds: float) -> list[str]:
    """The addresses of `host`, unchecked. Raises NotFound after `seconds` at the latest."""
    # getaddrinfo takes no timeout. The thread that outlives its welcome ends with the resolver's own (resolv.conf(5): 2 x 5 s
    # per server) and keeps nobody waiting.
    answer: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            answer.put(OSError(str(error)))
        else:
            answer.put(list(dict.fromkeys(str(entry[4][0]) for entry in found)))

    threading.Thread(target=ask, name="resolve", daemon=True).start()
    try:
        result = answer.get(timeout=max(0.0, seconds))
    except queue.Empty:
        raise NotFound from None
    if isinstance(result, OSError) or not result:
        raise NotFound
    return result
