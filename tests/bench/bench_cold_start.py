"""What a cold start costs the API and the functions that poll, pay and deliver, as a ratio to a floor measured in the same run.

Run as a script: ``.venv/bin/python tests/bench/bench_cold_start.py``. Budget: at most 1.3 times the floor for each, which is
`import chalice, pydantic` and a client for DynamoDB. What is compared with it is `import app`, the function's own module and the
store with its client. `first request` goes on with an event, by the handler, as far as its first request to AWS: what that event's
work imports and makes is in it. Without a budget: the floor does no work.

Everything is imported from the deployment package, unpacked as Lambda has it (pip downloads what is pinned: a minute): no other
packages, no home folder, and read-only. A process that could write into the package is not measured, root's gives up the privilege
(`setpriv`), and a package in which anything was touched breaks the run. CPU time, since imports are nothing else once the files
are in memory. Each run is a new process; they take turns, so that all meet the same machine. The last column is the start without
any compiled module.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from infra.rehearse.functions import without_privileges
from tests.bench.bench_cold_payout import unpacked

ROUNDS = 15
BUDGET = 1.3
FLOOR, FIRST = "floor", ", first request"
_TIMED = """
import os, socket, sys, time
sys.path.insert(0, sys.argv[1])
if os.access(sys.argv[1], os.W_OK) or os.access(os.path.join(sys.argv[1], "app.py"), os.W_OK):
    sys.exit("the package is not read-only")


def first_request(*asked, **named):
    took = time.process_time() - began
    # This program's own: getrusage's is not less than that of the process which started it.
    with open("/proc/self/status") as status:
        print(took, status.read().partition("VmHWM:")[2].split()[0], flush=True)
    os._exit(0)


socket.getaddrinfo = first_request
began = time.process_time()
{work}
"""
_REQUEST = {
    "resource": "/v1/coins", "path": "/v1/coins", "httpMethod": "GET", "headers": {"X-Api-Key": "sk_live_" + "a" * 16},
    "multiValueHeaders": {"X-Api-Key": ["sk_live_" + "a" * 16]}, "queryStringParameters": None,
    "multiValueQueryStringParameters": None, "pathParameters": None, "stageVariables": None, "body": None, "isBase64Encoded": False,
    "requestContext": {
        "resourcePath": "/v1/coins", "httpMethod": "GET", "identity": {"sourceIp": "192.0.2.1"}, "path": "/api/v1/coins",
        "stage": "api", "requestId": "1",
    },
}  # fmt: skip
_SCHEDULE = {
    "version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.events", "account": "1", "detail": {},
    "time": "2026-01-01T00:00:00Z", "region": "eu-central-1", "resources": ["arn"],
}  # fmt: skip


def _message(**body: str) -> dict[str, object]:
    record = {"messageId": "1", "receiptHandle": "1", "eventSource": "aws:sqs", "messageAttributes": {}}
    return {"Records": [{**record, "body": json.dumps(body)}]}


EVENTS = {
    "app": _REQUEST,
    "poll_ethereum": _SCHEDULE,
    "payout": _message(line="live:ethereum"),
    "deliver": _message(tenant="live:mch_1", endpoint="we_1"),
}
"""By the handlers' names in app.py."""


def works() -> dict[str, str]:
    """What is timed: programs by name. Each handler's comes twice, until it is ready and until its first request."""
    context = (
        "type('Context', (), {'aws_request_id': '1', 'function_name': 'f', 'get_remaining_time_in_millis': lambda s: 29000})()"
    )
    floor = "import chalice, pydantic, botocore.session; botocore.session.get_session().create_client('dynamodb'); first_request()"
    found = {FLOOR: floor}
    for name, event in EVENTS.items():
        module = "chalicelib.wiring" if name == "app" else f"chalicelib.workers.{name.partition('_')[0]}"
        ready = (
            f"import app, {module}; from chalicelib import wiring; wired = wiring.services(); wired.store.models.connection.client"
        )
        found[name] = f"{ready}; {'wired.gate; ' if name == 'app' else ''}first_request()"
        found[f"{name}{FIRST}"] = f"import app; app.{name}({event!r}, {context})"
    return found


def start(package: Path, name: str, work: str, *options: str) -> tuple[float, float]:
    """CPU milliseconds of the work called `name`, and its process's largest memory in MB. Raises CalledProcessError; RuntimeError
    without a request."""
    environment = {
        "PATH": os.environ["PATH"], "STAGE": "prod", "HOME": "/nonexistent", "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_LAMBDA_FUNCTION_NAME": "gateway-prod",
        "_HANDLER": f"app.{name.removesuffix(FIRST)}",
    }  # fmt: skip
    program = [*without_privileges(), sys.executable, "-I", "-S", *options, "-c", _TIMED.format(work=work), str(package)]
    done = subprocess.run(program, cwd=package, env=environment, capture_output=True, text=True, check=True)
    if len(lines := done.stdout.splitlines()[-1:]) != 1 or len(lines[0].split()) != 2:
        raise RuntimeError(f"it asked nothing of AWS: {done.stdout[-500:]} {done.stderr[-1500:]}")
    seconds, memory = map(float, lines[0].split())
    return seconds * 1000, memory / 1024


def main(rounds: int = ROUNDS) -> int:
    with tempfile.TemporaryDirectory() as folder:
        packages, package = unpacked(Path(folder))
        times: dict[str, list[float]] = {name: [] for name in works()}
        memory, plain = dict.fromkeys(times, 0.0), dict.fromkeys(times, 0.0)
        for turn in range(rounds + 1):
            for name, work in works().items():
                milliseconds, memory[name] = start(package, name, work)
                if turn:  # the first one fills the machine's file cache
                    times[name].append(milliseconds)
        for name, work in works().items():
            plain[name], _ = start(package, name, work, "-B", "-X", f"pycache_prefix={folder}/none")
        if touched := packages.touched():
            raise RuntimeError(f"written into the package: {touched[:5]}")
    best = {name: min(values) for name, values in times.items()}
    for name, values in times.items():
        print(
            f"{name:30} best {best[name]:5.0f} ms  median {statistics.median(values):5.0f} ms {memory[name]:4.0f} MB  "
            f"{best[name] / best[FLOOR]:.2f} x the floor  not compiled {plain[name]:5.0f} ms"
        )
    slowest = max(best[name] for name in EVENTS) / best[FLOOR]
    print(f"budget {BUDGET}: {'kept' if slowest <= BUDGET else 'BROKEN'}")
    return 0 if slowest <= BUDGET else 1


if __name__ == "__main__":
    sys.exit(main())
