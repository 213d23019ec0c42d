"""Clients of botocore, made once for each service and copied afterwards: making one takes 40 ms, half of what many a test needs.

The service starts anew for each test of the local stack, and makes its sessions and clients again. Here the second client of a
kind is a copy of the first with handlers of its own: a handler that one test registers is not called in the next.
"""

from __future__ import annotations

import copy
import os
from functools import lru_cache
from importlib import import_module
from threading import Lock
from typing import Any

from botocore import handlers
from botocore.session import Session

_hooks: Any = import_module("botocore.hooks")  # without types
_DONE = "_gateway_copied"
_LOCK = Lock()


def repair_clients() -> None:
    """Copy sessions' handlers and clients where the same ones were made before. May be called any number of times."""
    if getattr(Session, _DONE, False):
        return
    setattr(Session, _DONE, True)
    _remember_signatures()
    _copy_quickly()
    _copy_handlers()
    _copy_clients()


def _remember_signatures() -> None:
    """botocore inspects a handler's signature at each registration: 120 for a session, and the same ones again for a client."""
    remembered = lru_cache(maxsize=2000)(_hooks.accepts_kwargs)

    def accepts_kwargs(handler: Any) -> Any:
        # A bound method is not kept alive here: its function has the same signature.
        return remembered(getattr(handler, "__func__", handler))

    _hooks.accepts_kwargs = accepts_kwargs


def _copy_quickly() -> None:
    """A copy of the handlers is a tree of 400 nodes and 600 lists, which botocore copies by `copy.copy`, each."""
    node_list = _hooks.NodeList

    def copied(self: Any, node: dict[Any, Any]) -> dict[Any, Any]:
        copy_of = {}
        for key, value in node.items():
            if type(value) is dict:
                copy_of[key] = copied(self, value)
            elif type(value) is node_list:
                copy_of[key] = node_list(value.first[:], value.middle[:], value.last[:])
            else:
                copy_of[key] = value
        return copy_of

    _hooks._PrefixTrie._recursive_copy = copied


def _copy_handlers() -> None:
    session: Any = Session
    register = session._register_builtin_handlers
    first: dict[int, Any] = {}

    def registered(self: Any, events: Any) -> None:
        known = len(handlers.BUILTIN_HANDLERS)  # moto adds one when it is imported
        if known not in first:
            register(self, events)
            first[known] = copy.copy(events._emitter)
            return
        self._original_handler = events._emitter = copy.copy(first[known])

    session._register_builtin_handlers = registered


def _copy_clients() -> None:
    session: Any = Session
    create = session.create_client
    made: dict[Any, Any] = {}

    def create_client(self: Any, *arguments: Any, **named: Any) -> Any:
        key = _key(self, arguments, named)
        with _LOCK:
            if key not in made:
                made[key] = create(self, *arguments, **named)
            return _twin(made[key])

    session.create_client = create_client


def _key(session: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """All that makes one client differ from another: its arguments, the session's own configuration, and the environment."""
    environment = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(("AWS_", "BOTO"))))
    own = (session.get_default_client_config(), named.get("config"))
    told = tuple((name, value) for name, value in sorted(named.items()) if name != "config")
    configured = tuple(None if config is None else repr(sorted(config._user_provided_options.items())) for config in own)
    who = session._credentials
    shown = None if who is None else (who.access_key, who.secret_key, who.token)
    return arguments, told, configured, shown, repr(session._session_instance_vars), environment, len(handlers.BUILTIN_HANDLERS)


def _twin(client: Any) -> Any:
    """A client with handlers of its own, and all its retries before it; all else is the first one's, which nobody changes."""
    twin = object.__new__(type(client))  # `copy` would ask it for attributes that it makes up
    twin.__dict__.update(client.__dict__)
    twin.meta = copy.copy(client.meta)
    twin.meta.events = copy.copy(client.meta.events)
    for name, its in (("_endpoint", "_event_emitter"), ("_request_signer", "_event_emitter")):
        part = copy.copy(getattr(client, name))
        setattr(part, its, twin.meta.events)
        setattr(twin, name, part)
    handler = twin.meta.events._emitter._unique_id_handlers.get(f"retry-config-{client.meta.service_model.service_id.hyphenize()}")
    checker = getattr(getattr(handler and handler["handler"], "__self__", None), "_retry_quota", None)
    if checker is not None:
        checker._quota._available_capacity = checker._quota._max_capacity
    return twin
