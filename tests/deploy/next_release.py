"""Makes the next release of a copy of the project, as far as a deploy sees one: other code of every function, a route more and one
less, two functions that go (a schedule's, a queue's), and two indexes more of one table.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from infra import deploy
from infra.deployment import check, plan
from infra.deployment.template_nodes import of, plain, properties_of, replaced, resources

GONE = ("archive", "collect")
ROUTES = {"+": "/v1/later", "-": "/v1/balances"}
TABLE, INDEXES = "records", ("later", "latest")


def check_out(project: Path) -> None:
    """Make the copy's app.py, and this process's template, those of the next release. The copy is what `app` is from here on."""
    file = project / "app.py"
    file.write_text(_app(file.read_text()))
    sys.modules.pop("app", None)
    sys.path.insert(0, str(project))
    importlib.invalidate_caches()
    template = project / deploy.TEMPLATE.name
    template.write_text(_template(deploy.TEMPLATE.read_text()))
    for module in (deploy, check, plan):
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
    return replaced(text, {"RecordsTable": wanted})
