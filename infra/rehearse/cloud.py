"""The AWS stand-in of a rehearsal, in a process of its own: one port of 127.0.0.1 for all services and for the deployed API, and
what Lambda, EventBridge and SQS do by themselves. Run as `python -m infra.rehearse.cloud FOLDER`; a line of JSON on standard input
says what else there is of a world, one on standard output which port it has. It ends with its standard input.

Whom a request is for says its Host: an API by the name that AWS gives it, `rehearsal` for what was seen here, else AWS.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from infra.local import repairs
from infra.local.aws import REGION, isolate_environment, share_loader
from infra.local.gateway import Gateway, Reply, Request, refusal
from infra.local.pump import Pump
from infra.local.queues import Sources
from infra.local.server import Server
from infra.rehearse import standing
from infra.rehearse.endpoint import Endpoint
from infra.rehearse.functions import Functions, World

MINUTE = 10.0
"""Seconds that pass for a schedule's minute: a rehearsal is over sooner than the confirmations of a payment."""
_LOOKS = 1.0
"""Seconds between looks at rules and mappings while a deploy changes them."""
_LIMIT = 128 * 1024 * 1024
"""Bytes of a request: a package of 50 MB is sent as base64."""
STAGE = "api"


class Cloud:
    """AWS as the rehearsal has it. `start` it first."""

    def __init__(self, folder: Path, names: dict[str, tuple[str, int]], trusted: str | None) -> None:
        self._endpoint = Endpoint()
        self._server = Server(self.answer, 0, threads=32, limit=_LIMIT)
        self._functions = Functions(World(folder, self._server.port, names, trusted))
        self._apis: dict[tuple[str, str], Gateway] = {}
        self._pump: Pump | None = None
        self._feeds: tuple[Any, ...] = ()
        self._ended = threading.Event()
        self._changed = threading.Event()
        self._looking = threading.Thread(target=self._look, name="sources", daemon=True)

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        self._server.start()
        self._looking.start()

    def stop(self) -> None:
        """End everything; functions that are at work, too."""
        self._ended.set()
        self._looking.join(timeout=10)
        self._feed(Sources((), ()))
        self._server.stop()
        self._functions.end()

    def answer(self, request: Request) -> Reply:
        """Answer for an API, for AWS, or tell what was seen."""
        host = next((value for name, value in request.headers if name.lower() == "host"), "").lower()
        if ".execute-api." in host:
            return self._api(host.split(".")[0], request)
        if host == "rehearsal":
            return Reply(200, [("Content-Type", "application/json")], json.dumps(self._seen()).encode())
        reply = self._endpoint.answer(request)
        if changes_sources(request):
            self._changed.set()
        return reply

    def _api(self, api: str, request: Request) -> Reply:
        try:
            shown = api, standing.published(api, STAGE)
        except ClientError:
            return refusal(f"there is no API {api}")
        if shown not in self._apis:
            self._apis[shown] = Gateway(standing.Api(api, self._functions.call), STAGE)
        return self._apis[shown].handle(request)

    def _seen(self) -> dict[str, Any]:
        figures = {name: asdict(each) for name, each in sorted(self._functions.figures.items())}
        return {"functions": figures, "touched": self._functions.packages.touched(), "refused": self._endpoint.identity.refused}

    def _look(self) -> None:
        """Feed functions by the rules and mappings that stand, whatever a deploy makes of them."""
        while not self._ended.wait(_LOOKS):
            if not self._changed.is_set():
                continue
            self._changed.clear()
            try:
                found = standing.sources(self._functions.call)
            except Exception as error:  # noqa: BLE001 - told; a deploy may be changing what is listed
                print(f"sources: {error!r}", file=sys.stderr, flush=True)
                self._changed.set()
                continue
            if self._feeds != standing.names(found):
                self._feed(found)

    def _feed(self, found: Sources) -> None:
        """Call functions by these sources, and by no others any more."""
        if self._pump is not None:
            self._pump.stop(seconds=30.0)
        self._pump = Pump(found, {each.name: each.seconds / 60 * MINUTE for each in found.schedules})
        self._feeds = standing.names(found)
        self._pump.start()


def changes_sources(request: Request) -> bool:
    """Whether a request may have changed a rule or a mapping: most do not, and looking at all of them takes a while."""
    headers = {name.lower(): value for name, value in request.headers}
    if headers.get("x-amz-target", "").startswith("AWSEvents."):
        return not headers["x-amz-target"].startswith(("AWSEvents.List", "AWSEvents.Describe"))
    return request.method != "GET" and "/event-source-mappings" in request.target


def main(folder: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    # What CloudFormation makes and moto does not (alarms, filters of metrics) is no news here.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    logging.getLogger("moto").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="moto")
    told = json.loads(sys.stdin.readline())
    isolate_environment()
    share_loader()
    repairs.install_for_deploying()
    from infra.rehearse import moto_running

    moto_running.prepare()
    from moto.core.models import MockAWS

    MockAWS(config={"core": {"mock_credentials": False, "reset_boto3_session": False}}).start()
    import boto3

    boto3.setup_default_session(region_name=REGION)
    cloud = Cloud(Path(folder), {name: (address, port) for name, (address, port) in told["names"].items()}, told["trusted"])
    cloud.start()
    print(json.dumps({"port": cloud.port}), flush=True)
    sys.stdin.read()
    cloud.stop()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
