"""What moto does otherwise than a rehearsal needs it, where functions are run by `functions.py`. Applied to a process for good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from moto.awslambda.models import LambdaFunction
from moto.core.botocore_stubber import BotocoreStubber
from moto.sqs.models import Queue

from infra.rehearse.endpoint import LOCK


def prepare() -> None:
    """Apply all of it. Call it once."""
    _one_at_a_time()
    _one_copy_of_a_package()
    _no_docker()


def _one_at_a_time() -> None:
    """moto was made for one caller at a time, this process's own requests among them."""
    process: Callable[..., Any] = BotocoreStubber.process_request

    def locked(self: BotocoreStubber, request: AWSPreparedRequest) -> Any:
        with LOCK:
            return process(self, request)

    BotocoreStubber.process_request = locked  # type: ignore[method-assign]


def _one_copy_of_a_package() -> None:
    """moto keeps a package twice for each function that runs it: 2 GB for one deploy of ours."""
    function: Any = LambdaFunction
    put, known = function._set_function_code, dict[str, bytes]()

    def once(self: Any, spec: dict[str, Any]) -> None:
        put(self, spec)
        self.code_bytes = known.setdefault(self.code_sha_256, self.code_bytes)
        if "ZipFile" in self.code:
            self.code["ZipFile"] = ""

    function._set_function_code = once


def _no_docker() -> None:
    """moto gives each message to the functions mapped to its queue at once, by Docker, while it is being sent."""
    queue: Any = Queue
    queue.lambda_event_source_mappings = property(lambda _: {}, lambda _, __: None)
