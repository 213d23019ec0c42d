"""Connections that check their IP address before they send anything.

A node's URL is checked where it is set; its name can come to mean another address afterwards (DNS rebinding). So the address that a
connection was really made to is looked at as soon as it stands, and nothing is sent where it is not allowed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    _Base = HTTPConnection
else:
    _Base = object


class ForbiddenNodeIp(Exception):
    """The node's IP address is forbidden. Nothing was sent."""


def node_pool(
    headers: Mapping[str, str], at_once: int, connect_timeout: float, timeout: float, allowed: Callable[[str], bool] | None
) -> urllib3.PoolManager:
    """Connections to a node, `at_once` of them kept. Times in seconds, `timeout` for each read from the socket. Where `allowed` is
    there, it decides on each connection's IP address."""
    made = urllib3.PoolManager(
        maxsize=at_once,
        headers=headers,
        retries=False,
        timeout=urllib3.Timeout(connect=connect_timeout, read=timeout),
    )
    if allowed is not None:
        made.pool_classes_by_scheme = pools(allowed)
    return made


def pools(allowed: Callable[[str], bool]) -> dict[str, Any]:
    """For `PoolManager.pool_classes_by_scheme`. `allowed` is given an IP address as text."""

    class Looking(_Base):
        def _new_conn(self) -> socket.socket:
            connected = super()._new_conn()
            if not allowed(str(connected.getpeername()[0])):
                connected.close()
                raise ForbiddenNodeIp
            return connected

    class Http(Looking, HTTPConnection):
        pass

    class Https(Looking, HTTPSConnection):
        pass

    class HttpPool(HTTPConnectionPool):
        ConnectionCls = Http

    class HttpsPool(HTTPSConnectionPool):
        ConnectionCls = Https

    return {"http": HttpPool, "https": HttpsPool}
