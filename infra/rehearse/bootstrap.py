"""What runs a function in a process of its own, as Lambda's runtime does: imports the handler from the package, and calls it with
one event after the other. Started as `python -I -S bootstrap.py`: nothing but the standard library and the package can be imported,
and boto3, which Lambda's runtime has besides, is not there.

Lines of JSON come by standard input. The first says where the package is, the handler, and what there is of a network: AWS, and
names of the world with the ports of this machine that answer for them. Everything else does not resolve. Answers go to standard
output; what the function prints goes to standard error.
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import resource
import socket
import sys
import time
import traceback
from typing import Any


class Context:
    """What a handler may ask of its invocation. https://docs.aws.amazon.com/lambda/latest/dg/python-context.html"""

    def __init__(self, told: dict[str, Any]) -> None:
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.invoked_function_arn = told["arn"]
        self.aws_request_id = told["request"]
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self._deadline = time.monotonic() + told["seconds"]

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def only(aws: int, names: dict[str, tuple[str, int]]) -> None:
    """Leave of the network AWS, on a port of this machine, and these names, each with a public address and the port that answers
    for it."""
    look_up, connect = socket.getaddrinfo, socket.socket.connect
    ports = dict(names.values())

    def resolved(host: Any, port: Any, *arguments: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name in names:
            name = names[name][0]
        elif name != "127.0.0.1" and name not in ports:
            raise socket.gaierror(socket.EAI_NONAME, f"{name}: the rehearsal has no network")
        return look_up(name, port, *arguments, **named)

    def connected(self: socket.socket, address: Any) -> None:
        if address[0] in ports:
            return connect(self, ("127.0.0.1", ports[address[0]]))
        if address[:2] != ("127.0.0.1", aws):
            raise OSError(f"{address}: the rehearsal has no network")
        return connect(self, address)

    socket.getaddrinfo = resolved
    socket.socket.connect = connected  # type: ignore[method-assign,assignment]


def peak_mb() -> float:
    """The most memory that this program has had. What getrusage tells includes the program that started it, until its exec."""
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123 - no more imports than it needs: they count
        found = next(line for line in file if line.startswith("VmHWM:"))
    return int(found.split()[1]) / 1024


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    told = json.loads(sys.stdin.readline())

    def answer(content: dict[str, Any]) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        content["memory_mb"] = peak_mb()
        content["cpu"] = used.ru_utime + used.ru_stime
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    only(told["aws"], {name: (address, port) for name, (address, port) in told["names"].items()})
    # The script's own folder is not the function's: -I leaves it out, but for the first entries that Python makes itself.
    sys.path.insert(0, told["task"])
    module, name = told["handler"].rsplit(".", 1)
    try:
        handler = getattr(importlib.import_module(module), name)
    except BaseException:
        answer({"error": traceback.format_exc()})
        raise
    answer({"ready": sys.version})
    for line in sys.stdin:
        call = json.loads(line)
        os.environ["_X_AMZN_TRACE_ID"] = call["trace"]
        # What it was at when its time was up: Lambda ends it without a word.
        faulthandler.dump_traceback_later(call["ends"] - 0.5)
        try:
            answer({"answer": handler(call["event"], Context(call))})
        except Exception as error:  # noqa: BLE001 - as Lambda: it is told, and the next event may go well
            traceback.print_exc()
            answer({"error": f"{type(error).__name__}: {error}"})
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
