"""Makes the next release of a copy of the project, as far as a deploy sees one: other code of every function, a route more and one
less, two functions that go (a schedule's, a queue's), two indexes more of one table, a queue and a table more. And the way back to
the release before.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from infra import deploy
from infra.deployment import check, plan, taken_away
from infra.deployment.template_nodes import joined, of, plain, properties_of, replaced, resources

GONE = ("archive", "collect")
ROUTES = {"+": "/v1/later", "-": "/v1/balances"}
TABLE, INDEXES = "records", ("later", "latest")
MORE = """
Resources:
  LaterQueue:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Sub "gateway-${Stage}-later"
  LaterTable:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: RetainExceptOnCreate
    UpdateReplacePolicy: Retain
    Properties:
      TableName: !Sub "gateway-${Stage}-later"
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
"""
_BEFORE = deploy.TEMPLATE


def check_out(project: Path) -> None:
    """Make the copy's app.py, and this process's template, those of the next release. The copy is what `app` is from here on."""
    file, template = project / "app.py", project / _BEFORE.name
    (project.parent / "app-before.py").write_text(file.read_text())
    file.write_text(_app(file.read_text()))
    template.write_text(_template(_BEFORE.read_text()))
    _use(project, template)


def check_out_the_one_before(project: Path) -> None:
    """Make all of it as it was before `check_out`, but for what mends nothing: its code is another one."""
    (project / "app.py").write_text(f"{(project.parent / 'app-before.py').read_text()}# mended\n")
    (project / _BEFORE.name).unlink()
    _use(project, _BEFORE)


def _use(project: Path, template: Path) -> None:
    sys.modules.pop("app", None)
    if str(project) not in sys.path:
        sys.path.insert(0, str(project))
    importlib.invalidate_caches()
    for module in (deploy, check, plan, taken_away):
        vars(module)["TEMPLATE"] = template


def _app(text: str) -> str:
    for name in GONE:
        text, count = re.subn(rf"\n@app\.[^\n]+\ndef {name}\(.*?(?=\n\n\n|\n*$)", "", text, flags=re.DOTALL)
        assert count == 1, name
    more = f'@app.route("{ROUTES["+"]}")\ndef later() -> dict[str, str]:\n    return {{}}\n'
    # Routes are put on when they are first walked.
    return f'{text.rstrip()}\n\n\nlist(app.routes)\ndel app.routes["{ROUTES["-"]}"]\n\n\n{more}'


def _template(text: str) -> str:
    properties = properties_of(resources(text)["RecordsTable"])
    wanted = {name: plain(of(properties, name)) for name in ("AttributeDefinitions", "GlobalSecondaryIndexes")}
    for name in INDEXES:
        keys = [{"AttributeName": f"{name}_pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
        wanted["AttributeDefinitions"].append({"AttributeName": f"{name}_pk", "AttributeType": "S"})
        index = {"IndexName": name, "KeySchema": keys, "Projection": {"ProjectionType": "KEYS_ONLY"}}
        wanted["GlobalSecondaryIndexes"].append(index)
    return joined(replaced(text, {"RecordsTable": wanted}), MORE, list(resources(MORE)))
