"""The commands of docs/deploying.md from a clone to the first live invoice, in their order, as an operator types them: ours by the
command line, AWS's by the same calls, curl by the app that was deployed. Run by deploying.py, in its process.

What a command prints goes into the next ones, where the page has `mch_…`, `$KEY` and `$API`. The nodes are one anvil: on this
machine, where the node of a deployed stage may not be.
"""

from __future__ import annotations

import builtins
import json
import re
import shlex
from collections.abc import Callable
from typing import Any

import boto3
from botocore import xform_name

from infra.deploy import TEMPLATE
from infra.local.anvil import Anvil
from tests.deploy.documented_aws import asked

PAGE = (TEMPLATE.parents[1] / "docs" / "deploying.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## First live invoice\n")[2].partition("\n## ")[0]
CLONE = re.findall(r"`(git clone [^`]+)`", PAGE.partition(SECTION)[0])
LINES = [line.removeprefix("AWS_PROFILE=keys ") for line in SECTION.partition("```\n")[2].partition("\n```")[0].splitlines()]
COMMANDS = [command for line in [*CLONE, *LINES] for command in line.split(" && ")]
SAID = re.search(r"(\d+) commands, (\d+) question", SECTION)
HERE = ("python3.13 -m venv", "export AWS_PROFILE=")
"""This process is in the clone and its environment already; moto asks nobody who he is."""

Operate = Callable[..., dict[str, Any]]


class Walk:
    """`operate` runs a command of ours, and gives its exit code and what it printed."""

    def __init__(self, operate: Operate) -> None:
        self._operate, self._left = operate, [line for line in LINES if not line.startswith(HERE)]
        self._known: dict[str, str] = {}
        self.questions: list[str] = []
        self.answer: dict[str, Any] = {}

    def until_deployed(self) -> dict[str, Any]:
        """Type everything up to `deploy`; what that printed."""
        while not (line := self._left.pop(0)).startswith("CLI deploy "):
            self._aws(line)
        return self._cli(line)

    def on_to_the_invoice(self, then: Callable[[Walk], Any]) -> Any:
        """Type the rest. `answer` is what the API answered last. What `then` gives, which still has the nodes."""
        _nodes_may_be_here()
        with Anvil(1) as node:
            # Two names of one node.
            for first, second in (("https://first.example", "https://second.example"), ("https://first…", "https://second…")):
                self._known |= {first: node.url, second: f"{node.url}/?second"}
            for line in self._left:
                if line.startswith("curl "):
                    self._curl(line)
                else:
                    self._keep(self._cli(line))
            self._known |= {"MERCHANT": self._known["mch_…"], "SLUG": "ethereum", "block N": "block 7"}
            return then(self)

    def type(self, line: str) -> dict[str, Any]:
        """What a command of ours said, and its exit code, whatever that is."""
        for written, meant in self._known.items():
            line = line.replace(written, meant)
        before = builtins.input
        vars(builtins)["input"] = self._agree
        try:
            return self._operate("--stage", "prod", *shlex.split(line.removeprefix("CLI ")))
        finally:
            vars(builtins)["input"] = before

    def _aws(self, line: str) -> None:
        call = asked(line)
        client: Any = boto3.client(call.service)  # type: ignore[call-overload]
        getattr(client, xform_name(call.operation))(**call.arguments)

    def _cli(self, line: str) -> dict[str, Any]:
        found = self.type(line)
        if found["code"]:
            raise AssertionError(f"{line}: {found}")
        return found

    def _agree(self, question: str = "") -> str:
        self.questions.append(question)
        return "y"

    def _keep(self, found: dict[str, Any]) -> None:
        text = "\n".join(found["said"])
        if text.startswith("{"):
            printed = json.loads(text)
            names = {"merchant": "mch_…", "key": "$KEY"}
            self._known |= {written: printed[name] for name, written in names.items() if name in printed}

    def _curl(self, line: str) -> None:
        from app import app
        from infra.local.gateway import Gateway, Request

        _, url, *options = shlex.split(line.replace("$KEY", self._known["$KEY"]))
        pairs = list(zip(options[::2], options[1::2], strict=True))
        headers = [tuple(value.split(": ", 1)) for option, value in pairs if option == "-H"]
        (body,) = (value for option, value in pairs if option == "-d")
        target = url.replace("$API", "/api/v1")
        reply = Gateway(app, "prod").handle(Request("POST", target, headers, body.encode(), "192.0.2.7"))  # type: ignore[arg-type]
        self.answer = json.loads(reply.body)


def _nodes_may_be_here() -> None:
    from chalicelib.usecases.catalogue import networks, node_urls

    for module in (networks, node_urls):
        vars(module).update(never_a_node=lambda url: False, may_be_a_node=lambda address: True)
