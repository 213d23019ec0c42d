"""Two operators deploy one stage at the same moment, each from a checkout and in a process of his own, against one AWS stand-in;
the one who is refused goes on afterwards. Prints what each was told, and what stands, as JSON. Run in a process of its own by
test_two_deploys.py: moto is changed for good.

    python -m tests.deploy.two_deploys <project> <second checkout> <stage>
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from typing import Any

import boto3

from chalicelib.settings import VARIABLES

_SMALL = (
    "import sys; from infra import package; package.is_packed = lambda name: name == 'app.py'; from infra.cli import main;"
    " sys.exit(main(sys.argv[1:]))"
)
"""All of our code, uploaded for each function, takes longer than all else."""


def main(first: str, second: str, stage: str) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    from moto.core.models import MockAWS

    from infra.local import aws, repairs
    from infra.local.server import Server
    from infra.rehearse import moto_running
    from infra.rehearse.endpoint import Endpoint
    from tests.deploy.deploying import standing

    aws.isolate_environment()
    aws.share_loader()
    repairs.install_for_deploying()
    moto_running.prepare()
    MockAWS(config={"core": {"mock_credentials": False, "reset_boto3_session": False}}).start()
    boto3.setup_default_session(region_name=aws.REGION)
    topic = boto3.client("sns").create_topic(Name="alarms")["TopicArn"]
    server = Server(Endpoint().answer, 0, threads=16, limit=128 * 1024 * 1024)
    server.start()
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}  # an operator's shell has none
    environment |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.port}"}

    def begin(checkout: str, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _SMALL, "--stage", stage, "deploy", *words]
        return subprocess.Popen(
            command,
            cwd=checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def end(begun: subprocess.Popen[str]) -> dict[str, Any]:
        said, wrong = begun.communicate(timeout=600)
        return {"code": begun.returncode, "said": said.splitlines(), "wrong": wrong.splitlines()}

    deploy = ("--yes", "--alarm-topic", topic)
    begun = [begin(checkout, *deploy) for checkout in (first, second)]
    answers = [end(each) for each in begun]
    found = {"together": answers, "once": standing()}
    refused = next((place for place, each in enumerate(answers) if each["code"]), 0)
    found["again"] = end(begin((first, second)[refused], *deploy))
    found["check"] = end(begin((second, first)[refused], "--check"))
    found["stands"] = standing()
    server.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
