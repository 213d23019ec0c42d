"""Money that leaves, in the portal: a withdrawal that signers have to agree to, signed in the browser."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, press, signed_in, text, wait_for
from tests.support.signing import ALICE, BOB, Signer

pytestmark = pytest.mark.browser

PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
KEY_NAME = "other_merchant_test"
"""A merchant that other tests do not withdraw with: its signers are in nobody's way."""
WAITED = 60
Ask = Callable[..., Any]


def sent(service: dict[str, Any], method: str, path: str, body: Any = None) -> Any:
    """The answer's JSON, refusals included."""
    headers = {"X-Api-Key": service["keys"][KEY_NAME], "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{service['base_url']}/v1{path}", data, headers, method=method)  # noqa: S310
    try:
        with urllib.request.urlopen(asked) as answer:  # noqa: S310
            return json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        return json.loads(refusal.read())


@pytest.fixture
def ask(service: dict[str, Any]) -> Ask:
    return lambda method, path, body=None: sent(service, method, path, body)


def funded(ask: Ask, amount: str = "10") -> None:
    """At least so many ETH are available."""
    invoice = ask("POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": amount})
    ask("POST", "/sandbox/deposits", {"network": "ethereum", "coin": "eth", "address": invoice["address"], "amount": amount})
    ask("POST", "/sandbox/blocks", {"network": "ethereum", "count": 12})
    until = time.monotonic() + WAITED
    while not any(float(one["available"]) >= float(amount) for one in ask("GET", "/balances")["data"] if one["coin"] == "eth"):
        assert time.monotonic() < until, "the money did not come"
        time.sleep(0.2)


def change(ask: Ask, config: dict[str, Any], *signers: Signer) -> None:
    """Put signers in or away, with the signatures that this needs."""
    refusal = ask("PUT", "/merchant/settings", {"multisig_config": config})
    if refusal["success"]:
        return
    words = refusal["error"]["details"]["reason"].partition(": ")[2]
    signatures = [{"signer_id": one.name, "signature": one.sign(words)} for one in signers]
    assert ask("PUT", "/merchant/settings", {"multisig_config": config, "signatures": signatures})["success"]


@pytest.fixture
def signers(ask: Ask) -> Iterator[None]:
    """Two signers, both of whom have to agree to 1 and more; nobody afterwards."""
    people = [ALICE.config, BOB.config]
    counts = {"required_signatures": 2, "total_signers": 2, "threshold_amount": "1"}
    change(ask, {"enabled": True, **counts, "signers": people}, ALICE, BOB)
    yield
    change(ask, {"enabled": False, "signers": []}, ALICE, BOB)


def key_file(folder: Path, signer: Signer, seed: int) -> Path:
    """The signer's key: 32 bytes in hex."""
    file = folder / f"{signer.name}.hex"
    file.write_text((bytes([seed]) * 32).hex())
    return file


def choose(page: Browser, file: Path) -> None:
    """A file, as a person picks it."""
    page.wait("document.querySelector('dialog input[type=file]') !== null")
    found = page.tell("Runtime.evaluate", expression="document.querySelector('dialog input[type=file]')")
    page.tell("DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"])


def confirm(page: Browser) -> None:
    """The dialog's own button."""
    page.run("document.querySelector('dialog button[type=submit]').click()")


def test_a_withdrawal_is_approved_in_the_browser(
    page: Browser, service: dict[str, Any], ask: Ask, signers: None, tmp_path: Path
) -> None:
    funded(ask)
    signed_in(page, service, KEY_NAME, "/withdrawals/new")
    fill(page, {"Coin": "eth@ethereum", "To address": PAYEE.lower(), "Amount": "2.50", "Note": "Rent <b>of</b> May"})
    press(page, "Go on")
    said = wait_for(page, "Check before you send")
    assert PAYEE in said and "It will wait for 2 signatures" in said and "7.5 ETH are left afterwards" in said
    press(page, "Send 2.50 ETH")
    wait_for(page, "Waits for 2 more signatures")
    assert "Rent <b>of</b> May" in text(page)
    for signer, seed, then in ((ALICE, 1, "Waits for one more signature"), (BOB, 2, "2 of 2")):
        press(page, "Sign and accept")
        choose(page, key_file(tmp_path, signer, seed))
        assert f"eth\n2.5\n{PAYEE}" in text(page)
        assert axe(page) == []
        confirm(page)
        page.wait("document.querySelector('dialog')?.innerText ?? ''", lambda shown: shown == "")
        wait_for(page, then)
    made = page.run("location.hash").rpartition("/")[2]
    assert ask("POST", f"/sandbox/withdrawals/{made}", {"outcome": "confirm"})["success"]
    until = time.monotonic() + WAITED
    while (record := ask("GET", f"/withdrawals/{made}")["data"])["status"] != "confirmed":
        assert time.monotonic() < until, record
        time.sleep(0.2)
    assert [one["signer_id"] for one in record["approval"]["signatures"]] == ["alice", "bob"]
    page.run("location.reload()")
    wait_for(page, "It is paid")
    stored = page.run("JSON.stringify(Object.entries(sessionStorage))")
    assert bytes([1] * 32).hex() not in stored, "no part of a signer's key is kept"
