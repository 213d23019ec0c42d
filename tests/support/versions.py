"""Two versions of the service in one process, over the same tables and queues: this one, and one that comes after it.

The next version is this one with the additions of `ADDITIONS`: a copy of the product's files with these edits, imported beside it.
Another version is any tree of the repository, such as the tag of a release (`copy_of_tree`).
Of the two sets of modules one is in `sys.modules` at a time, so what a function imports when it is called is of its own version.
"""

from __future__ import annotations

import importlib
import io
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from infra.deployment import index_steps
from infra.deployment.template_nodes import named, of, plain, properties_of, replaced, resources, type_of
from tests.support.stack import Client, Response, Stack

ROOT = Path(__file__).parent.parent.parent
API = "api"
"""The function of requests, beside those of the app."""
REMARK, SAID_BY = "remark", "said_by"
"""Members that the next version adds to an invoice's terms and to each of its payments."""
TOUCHES = "touches"
"""The field that the next version adds to the records of `TOUCHED`: how often it has stored one over its version before."""
TOUCHED = ("Invoice", "Deposit", "Withdrawal")
LATER = "later_pk"
"""The attribute that the next version adds to invoices, for an index of its own."""
ECHO = "echo"
"""The kind of work that the next version opens for an invoice, and closes never."""
NOTED = "note.made"
"""The event that the next version tells of an invoice."""
_TERMS_END = '    late_payments_percent: str = "0"\n\n    @property\n    def strict'
_PAYMENT_END = (
    "    confirmed: bool = False\n    worth: FiatValue | None = None\n\n\n@dataclass(frozen=True, slots=True)\nclass Misdirected"
)
_EMITTED = "    emitted: int = 0\n    version: int = 1\n"
_SLOT = "    worth: FiatValue | None = None\n    slot: int = 0\n    version: int = 1\n"
CHECKING = "checking"
"""The status that each withdrawal has for half a minute in the next version before it is begun; `CHECKED` says that it had it."""
CHECKED = "checked"
SAID = "said"
"""The member that the next version adds to events, and says to their receivers."""
INDEX = "by_later"
"""The index that the next version adds: invoices by `LATER`."""
_STATUSES = 'WithdrawalStatus = Literal["pending",'
_STEP = '        if withdrawal.status != "pending":\n            return self._go_on(network, withdrawal)\n'
_TOLD = "    data: Mapping[str, Any]\n    more:"
_OPENED = "made = [*unique, *changes, *changed(None, invoice), Open(expiry_work(invoice)), *news.emit()]"

ADDITIONS: tuple[tuple[str, str, str], ...] = (
    # A field, which each save counts up.
    ("domain/invoices/invoices.py", _EMITTED, _EMITTED + f"    {TOUCHES}: int = 0\n"),
    ("domain/deposits/deposits.py", _EMITTED, _EMITTED + f"    {TOUCHES}: int = 0\n"),
    ("domain/withdrawals/withdrawals.py", _SLOT, _SLOT + f"    {TOUCHES}: int = 0\n"),
    (
        "domain/versions.py",
        "    return replace(record, version=version_after(record))",
        f"    more = {{'{TOUCHES}': record.{TOUCHES} + 1}} if hasattr(record, '{TOUCHES}') else {{}}\n"
        "    return replace(record, version=version_after(record), **more)",
    ),
    (
        "usecases/invoices/status.py",
        "late_worth=_late_worth(before, old, new), version=version_after(before)).settled()",
        f"late_worth=_late_worth(before, old, new), version=version_after(before), {TOUCHES}=before.{TOUCHES} + 1).settled()",
    ),
    # A status: a worker finds a withdrawal pending and leaves it so; the one that takes it up again goes on.
    ("domain/withdrawals/withdrawals.py", _STATUSES, f'{_STATUSES} "{CHECKING}",'),
    ("domain/withdrawals/withdrawals.py", f"    {TOUCHES}: int = 0\n", f"    {TOUCHES}: int = 0\n    {CHECKED}: bool = False\n"),
    (
        "domain/withdrawals/withdrawals.py",
        '    "pending": frozenset({',
        f'    "{CHECKING}": frozenset(),\n    "pending": frozenset({{',
    ),
    ("domain/audit/withdrawals.py", '    "pending": (None,),\n', f'    "pending": (None,),\n    "{CHECKING}": (None,),\n'),
    (
        "domain/audit/open_work.py",
        'if w.status in ("pending", "processing")]',
        f'if w.status in ("pending", "processing", "{CHECKING}")]',
    ),
    (
        "usecases/withdrawals/payout_line.py",
        'status in ("pending", "processing") and',
        f'status in ("pending", "processing", "{CHECKING}") and',
    ),
    (
        "usecases/withdrawals/retry_idle.py",
        'order = ready_order(tenant, now) if before.status == "pending" else',
        f'order = ready_order(tenant, now) if before.status in ("pending", "{CHECKING}") else',
    ),
    (
        "usecases/withdrawals/retry_idle.py",
        'payout_work(after) if before.status == "pending" else None',
        f'payout_work(after) if before.status in ("pending", "{CHECKING}") else None',
    ),
    (
        "usecases/payouts/account_payouts.py",
        _STEP,
        f'        if withdrawal.status == "pending" and not withdrawal.{CHECKED}:\n'
        "            from chalicelib.domain.versions import next_version\n\n"
        f'            self._store.commit([Save(replace(next_version(withdrawal), status="{CHECKING}"))])\n'
        '            return "waiting"\n'
        f'        if withdrawal.status == "{CHECKING}":\n'
        "            from chalicelib.domain.versions import next_version\n\n"
        f'            withdrawal = replace(next_version(withdrawal), status="pending", {CHECKED}=True)\n'
        "            self._store.commit([Save(withdrawal)])\n"
        f"{_STEP}",
    ),
    # Members of nested values.
    ("domain/invoices/terms.py", _TERMS_END, _TERMS_END.replace("\n\n", f'\n    {REMARK}: str = "next"\n\n', 1)),
    ("domain/invoices/invoices.py", _PAYMENT_END, _PAYMENT_END.replace("\n\n\n", f'\n    {SAID_BY}: str = "next"\n\n\n', 1)),
    # A record, a kind of work, an event.
    (
        "domain/invoices/invoices.py",
        "@dataclass(frozen=True, slots=True)\nclass ExternalId:",
        "@dataclass(frozen=True, slots=True)\nclass Note:\n    tenant: TenantId\n    id: str\n    version: int = 1\n\n\n"
        "@dataclass(frozen=True, slots=True)\nclass ExternalId:",
    ),
    (
        "store/schema.py",
        '    "ExternalId": Kind(',
        '    "Note": Kind("records", lambda r: f"note#{r.tenant}", lambda r: r.id),\n    "ExternalId": Kind(',
    ),
    (
        "usecases/invoices/invoices.py",
        _OPENED,
        f'news.tell(invoice.tenant, "{NOTED}", f"note_{{invoice.id}}", 1, {{"id": invoice.id}})\n'
        "        from chalicelib.domain.invoices.invoices import Note\n"
        "        from chalicelib.domain.work import Work, lane_of\n\n"
        f'        echo = Open(Work("{ECHO}", lane_of(invoice.id), "", invoice.id))\n'
        f"        {_OPENED}\n        made += [Save(Note(invoice.tenant, invoice.id)), echo]",
    ),
    # A member of events, and of what is sent of them.
    ("domain/webhooks/events.py", _TOLD, _TOLD.replace("    more:", f'    {SAID}: str = ""\n    more:')),
    ("usecases/base/outbox.py", "sequence, self.at, told))", f'sequence, self.at, told, {SAID}="next"))'),
    (
        "domain/webhooks/endpoints.py",
        '"timestamp": timestamp, "sequence": event.sequence}\n',
        '"timestamp": timestamp, "sequence": event.sequence}\n'
        f'    content |= {{"{SAID}": event.{SAID}}} if event.{SAID} else {{}}\n',
    ),
    # A member of messages.
    ("store/queues.py", "MessageBody=json.dumps(body), **extra", 'MessageBody=json.dumps({**body, "next": "1"}), **extra'),
    # An attribute for an index.
    (
        "store/indexes.py",
        '        "list_pk": listed_under("inv", r.tenant),\n        "status_pk"',
        f'        "{LATER}": "later",\n        "list_pk": listed_under("inv", r.tenant),\n        "status_pk"',
    ),
    (
        "store/indexes.py",
        '    return sorted(found - {"pk", "sk"})',
        f'    return sorted((found | {{"{LATER}"}}) - {{"pk", "sk"}})',
    ),
)


def copy_of_next(root: Path) -> None:
    """Write the next version's `app.py` and `chalicelib` below `root`. Raises AssertionError where an addition has no place."""
    shutil.copy(ROOT / "app.py", root / "app.py")
    shutil.copytree(ROOT / "chalicelib", root / "chalicelib", ignore=shutil.ignore_patterns("__pycache__"))
    for name, place, addition in ADDITIONS:
        path = root / "chalicelib" / name
        text = path.read_text(encoding="utf-8")
        assert text.count(place) == 1, f"{name}: not once in it: {place}"
        path.write_text(text.replace(place, addition), encoding="utf-8")


def copy_of_tree(tree: str, root: Path) -> None:
    """Write `app.py` and `chalicelib` of a tag, or of another tree-ish of this repository, below `root`. Raises ValueError where
    git knows none of this name, or it has no such files.

    https://git-scm.com/docs/git-archive
    """
    told = subprocess.run(
        ["git", "archive", "--format=tar", "--end-of-options", tree, "app.py", "chalicelib"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if told.returncode:
        raise ValueError(f"git has no such tree: {told.stderr.decode(errors='replace').strip()[:300]}")
    with tarfile.open(fileobj=io.BytesIO(told.stdout)) as archive:
        archive.extractall(root, filter="data")


def release_before() -> str | None:
    """The tag of the release before this commit's own, None where nothing is tagged before it. Raises CalledProcessError."""

    def tags(*which: str) -> list[str]:
        asked = ["git", "tag", "--list", "--sort=-version:refname", *which]
        return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    own = tags("--points-at", "HEAD")
    return next((tag for tag in tags("--merged", "HEAD") if tag not in own), None)


class Version:
    """The product's modules below `root`."""

    def __init__(self, root: Path) -> None:
        self.root, self._modules = root, dict[str, Any]()
        sys.path.insert(0, str(root))
        try:
            with self.active():
                self.app: Any = importlib.import_module("app").app
                assert Path(str(sys.modules["chalicelib"].__path__[0])).parent == root
        finally:
            sys.path.remove(str(root))

    @contextmanager
    def active(self) -> Iterator[None]:
        """These modules are those that are imported."""
        other = _ours()
        _replace(other, self._modules)
        try:
            yield
        finally:
            self._modules = _ours()
            _replace(self._modules, other)

    def forget(self) -> None:
        """As in a fresh process."""
        with self.active():
            importlib.import_module("chalicelib.wiring").forget()

    def shift(self, milliseconds: int) -> None:
        """Put the clock of the service forward."""
        with self.active():
            importlib.import_module("chalicelib.wiring").services().clock.shift_ms = milliseconds

    def audit(self) -> list[Any]:
        """What is wrong in the books, by this version."""
        with self.active():
            services = importlib.import_module("chalicelib.wiring").services
            found: list[Any] = importlib.import_module("chalicelib.usecases.reconciliation.audit").audit(services().store)
            return found


def _ours() -> dict[str, Any]:
    return {name: module for name, module in sys.modules.items() if name == "app" or name.partition(".")[0] == "chalicelib"}


def _replace(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name in old:
        del sys.modules[name]
    sys.modules.update(new)


class BothVersions(Stack):
    """A stack whose requests and functions are each one version's: the next one's by the chance `share`, which `toss` draws, or by
    the function's name where they are `split`. Invoices are made by the next version, which adds to them, unless they are split."""

    def __init__(self, stack: Stack, after: Version, toss: random.Random) -> None:
        super().__init__(stack.aws, stack.app, stack.keys)
        self._stack, self.after, self._toss = stack, after, toss
        with after.active():
            self._next = Client(after.app, stack.aws.settings.stage)
        self.share = 0.5
        self.split: Callable[[str], bool] | None = None
        """Whether a function is the next version's, by its name; `API` is that of requests."""
        self.adds = True
        """Whether the next version makes the invoices."""
        self.calls = {"this": 0, "next": 0}
        self.app = _Tossed(stack.app, self)

    def turn(self, name: str, *, later: bool = False) -> Version | None:
        """Whose turn it is, the next version's with `later`; None is this version."""
        after = self.split(name) if self.split is not None else later or self._toss.random() < self.share
        self.calls["next" if after else "this"] += 1
        if not after:
            return None
        from chalicelib.wiring import services

        self.after.shift(services().clock.shift_ms)
        return self.after

    @contextmanager
    def deployed(self) -> Iterator[None]:
        """Each function is the next version's: the deploy is done."""
        split, self.split = self.split, lambda _: True
        try:
            yield
        finally:
            self.split = split

    def call(self, *asked: Any, **more: Any) -> Response:
        version = self.turn(API, later=self.adds and asked[:2] == ("POST", "/v1/invoices"))
        if version is None:
            return self._stack.call(*asked, **more)
        with version.active():
            return self._next.call(*asked, **more)


class _Tossed:
    """A Chalice app, as the pump sees it: each call of a function is one version's."""

    def __init__(self, app: Any, both: BothVersions) -> None:
        self.event_sources = app.event_sources
        self.handler_map = {name: self._tossed(name, app, both) for name in app.handler_map}

    @staticmethod
    def _tossed(name: str, app: Any, both: BothVersions) -> Any:
        def call(event: Any, context: Any) -> Any:
            version = both.turn(name)
            if version is None:
                return app.handler_map[name](event, context)
            with version.active():
                return version.app.handler_map[name](event, context)

        return call


# ---- The next version's index --------------------------------------------------------------------------------------------------


def template_of_next() -> str:
    """The template with one index more. Raises AssertionError where there is no place for it."""
    text = (ROOT / "infra" / "template.yaml").read_text(encoding="utf-8")
    found = {name: properties for name, properties in _tables(text).items() if "-records" in _named(properties)}
    ((logical, properties),) = found.items()
    wanted = {name: plain(of(properties, name)) for name in ("AttributeDefinitions", "GlobalSecondaryIndexes")}
    keys = [{"AttributeName": LATER, "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    index = {"IndexName": INDEX, "KeySchema": keys, "Projection": {"ProjectionType": "KEYS_ONLY"}}
    wanted["AttributeDefinitions"].append({"AttributeName": LATER, "AttributeType": "S"})
    wanted["GlobalSecondaryIndexes"].append(index)
    return replaced(text, {logical: wanted})


def _tables(text: str) -> dict[str, Any]:
    return {name: properties_of(each) for name, each in resources(text).items() if type_of(each) == "AWS::DynamoDB::Table"}


def _named(properties: Any) -> str:
    return str(of(properties, "TableName").value)


def bring_indexes(text: str, stage: str) -> int:
    """Bring the tables' indexes to what a template says, as CloudFormation does with each template of the way; how many came or
    went. Raises AssertionError where one template makes or removes more than one of a table."""
    dynamodb, changed = boto3.client("dynamodb"), 0
    for template in index_steps.steps(text, stage, partial(index_steps.table_of, dynamodb)):
        for properties in _tables(template).values():
            name = named(of(properties, "TableName"), stage)
            standing = index_steps.table_of(dynamodb, name)
            wanted = plain(of(properties, "GlobalSecondaryIndexes")) or []
            if standing is None:
                continue
            before = {each.name for each in standing.indexes}
            updates: list[Any] = [{"Create": each} for each in wanted if each["IndexName"] not in before]
            gone = before - {each["IndexName"] for each in wanted}
            updates += [{"Delete": {"IndexName": each}} for each in gone]
            assert len(updates) <= 1, "DynamoDB makes or removes one index in an update"
            if updates:
                types = plain(of(properties, "AttributeDefinitions"))
                dynamodb.update_table(TableName=name, AttributeDefinitions=types, GlobalSecondaryIndexUpdates=updates)
                changed += 1
    return changed
