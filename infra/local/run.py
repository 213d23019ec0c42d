"""The local stack in one process: `make run`, or `python -m infra.local.run`. PORT (8000) and NODES=1 come from the environment,
and CLOCK=deployed: schedules fire each minute and busy networks have ticks, as on AWS, where the local clock polls each second.

AWS is moto (`aws`), the API answers on 127.0.0.1 (`server`), schedules and queues run (`pump`). All data is gone at the end.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, NoReturn

ENVIRONMENT = {"WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "1"}
CLOCKS = {"local": "off", "deployed": "on"}
"""Who polls each second needs no ticks."""
_WHAT = {
    "client_test": "a merchant's, in the sandbox",
    "read_only_test": "the same merchant's, reads only",
    "other_merchant_test": "another merchant's, in the sandbox",
    "admin_test": "the operator's, in the sandbox",
    "client_live": "the merchant's, live networks",
    "admin_live": "the operator's, live networks",
}


class _Stop(BaseException):
    """Ctrl-C or SIGTERM: not an error, whatever is going on."""


_stopped = threading.Event()
_LONGEST = 12.0
"""Seconds from a signal to the end of the process, whatever is still waited for: keepers end the nodes in any case."""


def program() -> NoReturn:
    """Run until a signal, and end the process. Threads of handlers that are still at work are not waited for: they may be asking
    what answers late or never."""
    threading.Thread(target=_end_in_any_case, name="end", daemon=True).start()
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_in_any_case() -> NoReturn:
    from infra.local import runtime

    _stopped.wait()
    time.sleep(_LONGEST)
    runtime.withdraw_own()
    os._exit(0)


def main() -> int:
    """Run until a signal; the exit code. A second signal ends the process at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _on_signal)
    sys.unraisablehook = _on_lost
    try:
        with ExitStack() as stack:
            return _run(stack, time.monotonic())
    except _Stop:
        return 0


def _run(stack: ExitStack, began: float) -> int:
    wanted = os.environ.get("PORT") or "8000"
    port = int(wanted) if wanted.isdecimal() else 0
    if not 0 < port < 65536:
        print(f"PORT is {wanted!r}; it has to be a number from 1 to 65535", file=sys.stderr)
        return 1
    if not _free(port):
        print(f"Port {port} is taken. Stop what uses it, or take another: make run PORT={port + 1}", file=sys.stderr)
        return 1
    clock = os.environ.get("CLOCK") or "local"
    if clock not in CLOCKS:
        print(f"CLOCK is {clock!r}; it has to be {' or '.join(CLOCKS)}", file=sys.stderr)
        return 1
    os.environ["STAGE"] = "local"
    own = {"TICKS": CLOCKS[clock], "PUBLIC_URL": f"http://127.0.0.1:{port}/api"}
    for name, value in (ENVIRONMENT | own).items():
        os.environ.setdefault(name, value)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)

    nodes: Any = None
    if os.environ.get("NODES", "0") not in ("", "0"):
        from infra.local.devnets import LIVE_CHAINS, Devnets

        # Live networks that are this machine's own: their coins are worth what the sandbox's are, and nobody is asked.
        os.environ.setdefault("RATES_PROVIDERS", "fixed")
        os.environ["LIVE_CHAINS"] = LIVE_CHAINS
        nodes = Devnets()
        stack.callback(nodes.stop)
        nodes.start()
    began_own = time.monotonic() if nodes else began

    gc.disable()  # until it serves: nothing of what is imported meanwhile is garbage
    from chalicelib.settings import Settings
    from infra.local.aws import start_aws

    settings = Settings.from_environment()
    # Never stopped: it ends with the process, and until then nothing that is still at work may ask the real one.
    start_aws(settings)

    from app import app
    from infra.bootstrap import first_start
    from infra.local import runtime
    from infra.local.pace import Pace, open_kinds
    from infra.local.pump import Pump
    from infra.local.server import Server

    keys = first_start(settings, nodes.infos() if nodes else None)
    if nodes:
        nodes.fund_hot_wallets()
    pace = Pace(lambda: open_kinds(settings.table("work")))
    server = Server(app, port, stage=settings.stage, on_request=pace.asked)
    stack.callback(server.stop)
    server.start()
    pump = Pump(app, pace=pace, deployed=clock == "deployed")
    stack.callback(pump.stop)
    pump.start()
    base_url = f"http://127.0.0.1:{port}/api"
    urls = nodes.urls() if nodes else {}
    stack.callback(runtime.withdraw, port)
    runtime.publish(port, base_url, keys, urls)
    print(welcome(base_url, keys, urls, time.monotonic() - began_own), flush=True)
    _wait()
    return 0


def _wait() -> None:
    """For a signal. What is there now stays, and is never looked through for garbage."""
    gc.freeze()
    gc.enable()
    # No wait on the event: a signal's handler that sets it would meet the lock that its own thread holds.
    while not _stopped.is_set():
        time.sleep(0.5)


def welcome(base_url: str, keys: Mapping[str, str], nodes: Mapping[str, str], seconds: float) -> str:
    """What a newcomer reads: where, with which keys, two pages to open, and three commands to paste."""
    key = f"-H 'X-Api-Key: {keys['client_test']}'"
    post = f"{key} -H 'Content-Type: application/json'"
    invoice = """-d '{"currency": "eth", "amount": 0.05, "externalId": "order-1"}'"""
    deposit = r'''-d "{\"address\": \"$address\", \"network\": \"ethereum\", \"coin\": \"eth\", \"amount\": 0.05}"'''
    address = """grep -o '"address": *"[^"]*"' | cut -d'"' -f4"""
    lines = [
        "",
        f"  Gateway  {base_url}    (started in {seconds:.1f} s; Ctrl-C stops it; data is not kept)",
        "",
        *[f"  {name:20} {keys[name]}   {what}" for name, what in _WHAT.items() if name in keys],
        "",
        *[f"  {slug:20} {url}" for slug, url in nodes.items()],
        *([""] if nodes else []),
        "  In a browser: sign in with the key behind the link",
        f"     {base_url}/portal     {keys['client_test']}   the merchant's portal, in the sandbox",
        f"     {base_url}/console    {keys['admin_test']}   the operator's console, in the sandbox",
        "",
        "  1. Ask for a payment, and keep its address; the answer has a checkoutUrl, too: a page to pay it on",
        f"     address=$(curl -s {base_url}/v1/invoices {post} {invoice} | {address}); echo $address",
        "  2. Pay it, as a customer in the sandbox would",
        f"     curl -s {base_url}/v1/sandbox/deposits {post} {deposit}; echo",
        "  3. Watch it complete: twelve blocks, one a second",
        f"     curl -s '{base_url}/v1/invoices/getByExternalId?externalId=order-1' {key}; echo;"
        f" curl -s {base_url}/v1/balances {key}; echo",
        "",
    ]
    return "\n".join(lines)


def _free(port: int) -> bool:
    """Whether somebody could listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _on_lost(lost: Any) -> None:
    """A stop that was raised where Python can not raise is no fault: it was noted, and is seen later."""
    if not isinstance(lost.exc_value, _Stop):
        sys.__unraisablehook__(lost)


def _on_signal(number: int, frame: Any) -> NoReturn:
    if _stopped.is_set():
        # The second one. The nodes' keepers see that this process is gone, and end them.
        from infra.local import runtime

        runtime.withdraw_own()
        os._exit(128 + number)
    # What is raised is lost where Python can not raise: in callbacks of imports, in destructors. Whoever waits sees it then.
    _stopped.set()
    raise _Stop


if __name__ == "__main__":
    program()
