"""A merchant that pays out, as tests of the portal need it: money, signers, key files, and the API beside the page."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.asking import ask_for_any
from tests.support.browser import Browser
from tests.support.signing import Signer

PAYEE = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
KEY_NAME = "other_merchant_test"
"""A merchant that other tests do not withdraw with: its signers are in nobody's way."""
WAITED = 60
Ask = Callable[..., Any]


def sent(service: dict[str, Any], method: str, path: str, body: Any = None) -> Any:
    """The answer's JSON, refusals included."""
    return ask_for_any(service, method, path, body, KEY_NAME)


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


def key_file(folder: Path, signer: Signer, seed: int) -> Path:
    """The signer's key: 32 bytes in hex."""
    file = folder / f"{signer.name}.hex"
    file.write_text((bytes([seed]) * 32).hex())
    return file


def choose(page: Browser, file: Path, field: str = "dialog input[type=file]") -> None:
    """A file, as a person picks it."""
    script = f"document.querySelector({json.dumps(field)})"
    page.wait(f"{script} !== null")
    found = page.tell("Runtime.evaluate", expression=script)
    page.tell("DOM.setFileInputFiles", files=[str(file)], objectId=found["result"]["objectId"])


def confirm(page: Browser) -> None:
    """The dialog's own button."""
    page.run("document.querySelector('dialog button[type=submit]').click()")
