"""What a cold function imports: the resource that it was started for, and no record type before it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from chalice.app import Chalice

from chalicelib.api import VERSIONS, register, resources
from chalicelib.api.routes import ROUTES
from chalicelib.store.schema import RECORDS, kind_at, where_is

ROOT = Path(__file__).resolve().parents[3]


def test_each_path_finds_its_module_by_its_first_part() -> None:
    resources.load()
    for route in ROUTES:
        part = route.path.strip("/").partition("/")[0]
        assert route.handler.__module__.removeprefix(f"{resources.__name__}.") in resources.PARTS[part], route.path
    assert {route.path.strip("/").partition("/")[0] for route in ROUTES} == set(resources.PARTS)


def test_every_route_is_found_on_its_own() -> None:
    """As a function that has just started meets it: no other path was asked for before."""
    resources.load()
    for route in ROUTES:
        app = Chalice(app_name="cold")
        register(app)
        for prefix in VERSIONS if route.versioned else ("",):
            assert route.method in app.routes[prefix + route.path]
        assert len(app.routes) == len({route.path for route in ROUTES} | {route.address for route in ROUTES})


def test_a_request_loads_its_resource_alone() -> None:
    program = (
        "import sys, app; assert '/v1/balances' not in dict.keys(app.app.routes)\n"
        "assert list(app.app.routes['/v1/balances']) == ['GET']\n"
        "loaded = {name.rsplit('.', 1)[1] for name in sys.modules if name.startswith('chalicelib.api.resources.')}\n"
        "assert loaded == {'balances'}, loaded\n"
    )
    environment = {"STAGE": "local", "AWS_DEFAULT_REGION": "eu-central-1", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, timeout=60)


def test_the_edge_and_the_store_load_no_use_case_and_no_record_of_what_was_not_asked_for() -> None:
    program = (
        "import sys, app; from chalicelib import wiring\n"
        "wired = wiring.services(); wired.gate, wired.store\n"
        "kept = ('base', 'base.activity', 'base.clock', 'base.idempotency', 'merchants', 'merchants.access', "
        "'merchants.source_limits', 'ports', 'ports.changes', 'ports.clock', 'ports.failures', 'ports.store')\n"
        "loaded = {name.removeprefix('chalicelib.usecases.') for name in sys.modules if name.startswith('chalicelib.usecases.')}\n"
        "assert loaded <= set(kept), loaded - set(kept)\n"
        "money = {'invoices.invoices', 'withdrawals.withdrawals', 'withdrawals.approvals', 'deposits.deposits', 'ledger', "
        "'catalogue.rates', 'chain'}\n"
        "assert not (found := {name for name in money if f'chalicelib.domain.{name}' in sys.modules}), found\n"
        "assert 'chalicelib.store.commit' not in sys.modules\n"
    )
    environment = {"STAGE": "local", "AWS_DEFAULT_REGION": "eu-central-1", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, timeout=60)


def test_the_function_that_delivers_loads_no_chain_no_key_and_no_route() -> None:
    """All that it uses: what it would load with the first message is made here."""
    program = (
        "import sys, app; from chalicelib import wiring\n"
        "from chalicelib.workers import batches, deliver; from chalicelib.store import commit\n"
        "wired = wiring.services(); wired.leases, wired.wiring.parts.client('kms')\n"
        "heavy = ('web3', 'eth_account', 'bitcoinlib', 'tronpy', 'google', 'coincurve', 'cryptography', 'pydantic', 'boto3', "
        "'requests')\n"
        "ours = ('api.resources.', 'api.records', 'chains', 'custody', 'rates')\n"
        "found = {name for name in sys.modules if name.partition('.')[0] in heavy}\n"
        "found |= {name for name in sys.modules if name.startswith(tuple(f'chalicelib.{part}' for part in ours))}\n"
        "assert not found, found\n"
    )
    environment = {"STAGE": "local", "AWS_DEFAULT_REGION": "eu-central-1", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, check=True, timeout=60)


def test_records_are_known_by_names_that_are_theirs() -> None:
    """Two types of one name would share a place; a listed one must be found by its key again."""
    for name, where in RECORDS.items():
        if where.indexed is not None:
            assert import_module(f"chalicelib.domain.{where.module}").__dict__[name].__name__ == name
    from chalicelib.domain.invoices import invoices

    assert kind_at("inv#mch_x:test") is invoices.Invoice
    assert where_is(invoices.Invoice) is RECORDS["Invoice"]
