"""Money that leaves, in the portal: a withdrawal that signers have to agree to, signed in the browser."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.money_out import KEY_NAME, PAYEE, WAITED, Ask, change, choose, confirm, funded, key_file, sent
from tests.support.pages import fill, go, look, press, press_key, signed_in, stored, text, wait_for
from tests.support.signing import ALICE, BOB, MALLORY, Signer

pytestmark = pytest.mark.browser


@pytest.fixture
def service(service: dict[str, Any]) -> dict[str, Any]:
    """The stack, with a key of the merchant's for each test: a minute has 100 requests of one."""
    made = sent(service, "POST", "/api-keys", {"name": "pages", "type": "test", "permissions": ["full"]})["data"]
    return {**service, "keys": {**service["keys"], KEY_NAME: made["key"]}}


@pytest.fixture
def ask(service: dict[str, Any]) -> Ask:
    return lambda method, path, body=None: sent(service, method, path, body)


@pytest.fixture
def signers(ask: Ask) -> Iterator[None]:
    """Two signers, both of whom have to agree to 1 and more; nobody afterwards."""
    people = [ALICE.config, BOB.config]
    counts = {"required_signatures": 2, "total_signers": 2, "threshold_amount": "1"}
    change(ask, {"enabled": True, **counts, "signers": people}, ALICE, BOB)
    yield
    change(ask, {"enabled": False, "signers": []}, ALICE, BOB)


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


def lists(page: Browser, folder: Path, name: str) -> None:
    """Looked at wide and narrow, by day and by night: nothing to stumble over, and nothing beside the page."""
    for width, scheme in ((1280, "light"), (390, "dark")):
        look(page, width=width, scheme=scheme)
        assert page.run("document.documentElement.scrollWidth") <= width, name
        assert axe(page) == [], name
        page.screenshot(folder / f"{name}-{width}-{scheme}.png")
    look(page)


def pasted(page: Browser, signer: Signer) -> None:
    """A signature made elsewhere, over the text that the page shows."""
    words = page.run("[...document.querySelectorAll('pre[aria-label=\"The text to sign\"]')].at(-1).textContent")
    press(page, "Made elsewhere")
    fill(page, {"Signature": signer.sign(words)})


@pytest.mark.sweep
def test_a_signature_made_elsewhere_rejects(
    page: Browser, service: dict[str, Any], ask: Ask, signers: None, tmp_path: Path
) -> None:
    funded(ask)
    made = ask("POST", "/withdrawals", {"network": "ethereum", "coin": "eth", "amount": "3", "to_address": PAYEE})["data"]["id"]
    signed_in(page, service, KEY_NAME, "/approvals")
    lists(page, tmp_path, "approvals")
    assert "0 of 2 signatures" in text(page)
    press(page, "3 ETH")
    wait_for(page, "Sign and reject")
    lists(page, tmp_path, "waiting")
    press(page, "Sign and accept")
    page.wait("document.querySelector('dialog input[type=file]') !== null")
    lists(page, tmp_path, "signing")
    confirm(page)
    wait_for(page, "Choose the key file first")
    choose(page, key_file(tmp_path, MALLORY, 4))
    confirm(page)
    wait_for(page, "This key is none of the signers': alice, bob.")
    # Escape leaves it, and the focus is where it was.
    press_key(page, "Escape")
    page.wait("document.querySelector('dialog') === null")
    press(page, "Sign and reject")
    wait_for(page, f"eth\n3\n{PAYEE}\nreject")
    pasted(page, MALLORY)
    confirm(page)
    wait_for(page, "This is no signature of a signer over exactly this text.")
    fill(page, {"Signature": ALICE.sign(ask("GET", f"/withdrawals/{made}")["data"]["approval"]["signing_text"] + "\nreject")})
    confirm(page)
    page.wait("document.querySelector('dialog') === null")
    assert "rejected" in wait_for(page, "It has failed")
    assert ask("GET", f"/withdrawals/{made}")["data"]["status"] == "failed"


@pytest.mark.sweep
def test_a_text_that_differs_is_not_signed(page: Browser, service: dict[str, Any], ask: Ask, signers: None) -> None:
    funded(ask)
    made = ask("POST", "/withdrawals", {"network": "ethereum", "coin": "eth", "amount": "3", "to_address": PAYEE})["data"]["id"]
    signed_in(page, service, KEY_NAME, f"/withdrawals/{made}")
    page.run("""(() => { const real = fetch; window.fetch = async (...asked) => {
        const answer = await real(...asked);
        const words = (await answer.text()).replace('\\\\n3\\\\n', '\\\\n9\\\\n');
        return new Response(words, { status: answer.status, headers: answer.headers });
    }; })()""")
    press(page, "Sign and accept")
    assert "another text than this record" in wait_for(page, "Do not sign this")
    assert page.run("document.querySelector('dialog input, dialog textarea') === null")


@pytest.mark.sweep
def test_a_file_of_payouts_is_checked_and_paid_once(page: Browser, service: dict[str, Any], ask: Ask, tmp_path: Path) -> None:
    funded(ask, "20")
    people = [f"0x{n:040x}" for n in range(4096, 4096 + 104)]
    rows = [
        "address,amount,note",
        *(f"{address},0.01,=1+1" for address in people),
        f"{PAYEE},1e3,<img src=x onerror=alert(1)>",
        "0x12,1,",
    ]
    file = tmp_path / "payouts.csv"
    file.write_text("\n".join(rows))
    signed_in(page, service, KEY_NAME, "/withdrawals/batch")
    choose(page, file, "#payout-file")
    page.wait("document.querySelector('textarea').value.includes('0x12')")
    fill(page, {"Coin, where a row names none": "eth@ethereum", "Name of this run": "May <b>"})
    lists(page, tmp_path, "file")
    press(page, "Check the rows")
    wait_for(page, "2 rows are wrong")
    assert "1e3 is no amount" in text(page) and "no address of ethereum" in text(page)
    assert page.run("[...document.querySelectorAll('button')].find(each => each.textContent === 'Send 104 payments').disabled")
    lists(page, tmp_path, "wrong")
    fill(page, {"Leave the wrong rows out and pay the others": True})
    # The answer to the first batch is lost on the way.
    page.run("""(() => { const real = fetch; window.fetch = async (...asked) => {
        const answer = await real(...asked);
        if (asked[1].method !== 'POST') return answer;
        window.fetch = real;
        throw new TypeError('Failed to fetch');
    }; })()""")
    press(page, "Send 104 payments")
    press(page, "Send them")
    said = wait_for(page, "All payments are made")
    assert "nothing was paid twice" in said and "104 of 104 payments made" in said
    lists(page, tmp_path, "made")
    paid = ask("GET", "/withdrawals?limit=1&amount=0.01")["meta"]["pagination"]["total"]
    assert paid == len(people)
    press(page, "Done")
    fill(page, {"Rows": "\n".join(rows[:3]), "Coin, where a row names none": "eth@ethereum"})
    press(page, "Check the rows")
    wait_for(page, "2 rows were paid within the last day")
    fill(page, {"Pay them again": True})
    press(page, "Send 2 payments")
    press(page, "Send them")
    assert "Follow them" in wait_for(page, "All payments are made")
    assert ask("GET", "/withdrawals?limit=1&amount=0.01")["meta"]["pagination"]["total"] == len(people) + 2
    press(page, "Done")
    fresh_one = f"0x{5000:040x},0.01,"
    fill(page, {"Rows": "\n".join([*rows[:3], fresh_one]), "Coin, where a row names none": "eth@ethereum"})
    press(page, "Check the rows")
    wait_for(page, "2 rows were paid within the last day")
    fill(page, {"Leave them out and pay the others": True})
    press(page, "Send 1 payment")
    press(page, "Send them")
    wait_for(page, "All payments are made")
    assert ask("GET", "/withdrawals?limit=1&amount=0.01")["meta"]["pagination"]["total"] == len(people) + 3
    press(page, "Done")


@pytest.mark.sweep
def test_signers_guard_themselves_and_the_whitelist(page: Browser, service: dict[str, Any], ask: Ask, tmp_path: Path) -> None:
    signed_in(page, service, KEY_NAME, "/signers")
    wait_for(page, "Nobody has to sign")
    lists(page, tmp_path, "signers-none")
    press(page, "Name signers")
    press(page, "Go on")
    wait_for(page, "Signer 1 needs a name")
    hostile = "<img src=x onerror=alert(1)> \"'&"
    fill(page, {"From this amount on": "1.0", "Name": "alice", "Public key": ALICE.public_key.upper(), "Role": hostile})
    lists(page, tmp_path, "signers-form")
    press(page, "Go on")
    assert hostile in wait_for(page, "off → on")
    lists(page, tmp_path, "signers-change")
    press(page, "Make this change")
    wait_for(page, "Signatures are needed")
    lists(page, tmp_path, "signers-signing")
    choose(page, key_file(tmp_path, ALICE, 1))
    confirm(page)
    page.wait("document.querySelector('dialog') === null")
    assert hostile in wait_for(page, "1 of 1")
    lists(page, tmp_path, "signers")
    # A trusted address needs the signer, whose computer is another one.
    go(page, "/whitelist")
    press(page, "Add an address")
    fill(page, {"Network": "ethereum", "Address": PAYEE.lower(), "Name": hostile, "Most in 24 hours": "5.0"})
    press(page, "Go on")
    wait_for(page, "Make this change")
    press(page, "Make this change")
    wait_for(page, "Signatures are needed")
    words = page.run("document.querySelector('dialog pre').textContent")
    assert f'"address":"{PAYEE}","daily_limit":"5","monthly_limit":null' in words
    lists(page, tmp_path, "whitelist-signing")
    press(page, "Close")
    go(page, "/signers")
    fill(page, {"The text": words.replace('"5"', '"50"').replace("whitelist", "whitelists")})
    wait_for(page, "This can not be signed here")
    fill(page, {"The text": words})
    wait_for(page, "It would trust")
    lists(page, tmp_path, "other-change")
    choose(page, key_file(tmp_path, ALICE, 1), "main input[type=file]")
    page.run("document.querySelector('main form button[type=submit]').click()")
    wait_for(page, "Signed as alice")
    signature = page.run("document.querySelector('pre[aria-label=\"The signature\"]').textContent")
    assert signature == ALICE.sign(words)
    go(page, "/whitelist")
    press(page, "Add an address")
    fill(page, {"Network": "ethereum", "Address": PAYEE, "Name": hostile, "Most in 24 hours": "5"})
    press(page, "Go on")
    wait_for(page, "Make this change")
    press(page, "Make this change")
    wait_for(page, "Made elsewhere")
    press(page, "Made elsewhere")
    fill(page, {"Signature": signature})
    confirm(page)
    page.wait("document.querySelector('dialog') === null")
    assert hostile in wait_for(page, "5 a day")
    lists(page, tmp_path, "whitelist")
    press(page, f"Remove {PAYEE}")
    press(page, "Remove it")
    wait_for(page, "No trusted addresses yet")
    change(ask, {"enabled": False, "signers": []}, ALICE)


@pytest.mark.sweep
def test_a_claim_link_is_shown_once(page: Browser, service: dict[str, Any], ask: Ask, tmp_path: Path) -> None:
    funded(ask)
    hostile = "<script>alert(1)</script>"
    signed_in(page, service, KEY_NAME, "/claim-links/new")
    fill(page, {"Coin": "eth@ethereum", "Amount": "0.25", "What for": hostile})
    lists(page, tmp_path, "claim-new")
    press(page, "Make the link")
    wait_for(page, "copy it now")
    lists(page, tmp_path, "claim-made")
    secret = stored(page).rpartition("/")[2]
    assert hostile in wait_for(page, "Nobody has used the link yet")
    assert secret not in page.run("document.body.innerHTML + location.href + JSON.stringify(Object.entries(sessionStorage))")
    press(page, "Cancel")
    press(page, "Cancel it")
    wait_for(page, "It was cancelled")
    lists(page, tmp_path, "claim")
    go(page, "/claim-links")
    assert hostile in wait_for(page, "Cancelled")
    invoice = ask("POST", "/invoices", {"currency": "eth", "network": "ethereum", "amount": "1"})
    ask("POST", "/sandbox/deposits", {"network": "ethereum", "coin": "eth", "address": invoice["address"], "amount": "1"})
    ask("POST", "/sandbox/blocks", {"network": "ethereum", "count": 12})
    until = time.monotonic() + WAITED
    while "id" not in (refund := ask("POST", f"/invoices/{invoice['id']}/refunds", {"mode": "same", "reason": hostile})):
        assert time.monotonic() < until, refund
        time.sleep(0.2)
    go(page, "/refunds")
    assert hostile in wait_for(page, "Awaiting claim")
    lists(page, tmp_path, "refunds")
    press(page, "1 ETH")
    wait_for(page, "Its link was shown once")
    lists(page, tmp_path, "refund")


@pytest.mark.sweep
def test_what_a_key_may_not_do_is_not_offered(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "read_only_test", "/withdrawals")
    assert "New withdrawal" not in text(page)
    go(page, "/withdrawals/new")
    assert "Send money" in wait_for(page, "This key may not see this page")
    go(page, "/whitelist")
    assert "Add an address" not in text(page)
    go(page, "/signers")
    assert page.run("document.querySelector('main button') === null")


def tab_to(page: Browser, words: str) -> None:
    """Tab until the focus is on what is called so."""
    for _ in range(60):
        press_key(page, "Tab")
        named = "document.activeElement.labels?.[0]?.textContent.trim() || document.activeElement.textContent.trim()"
        if page.run(named) == words:
            return
    raise AssertionError(f"the keyboard does not reach {words}")


@pytest.mark.sweep
def test_without_ed25519_and_without_a_mouse(
    page: Browser, service: dict[str, Any], ask: Ask, signers: None, tmp_path: Path
) -> None:
    funded(ask)
    body = {"network": "ethereum", "coin": "eth", "amount": "1.5", "to_address": PAYEE}
    made = ask("POST", "/withdrawals", body)["data"]
    signed_in(page, service, KEY_NAME, "/approvals")
    page.run("crypto.subtle.importKey = async () => { throw new DOMException('no', 'NotSupportedError'); }; true")
    tab_to(page, "1.5 ETH")
    press_key(page, "Enter")
    wait_for(page, "Waits for 2 more signatures")
    assert page.run("document.activeElement.tagName") == "H1"
    tab_to(page, "Sign and accept")
    press_key(page, "Enter")
    wait_for(page, "This browser can not sign")
    lists(page, tmp_path, "unable")
    tab_to(page, "Signer")
    press_key(page, "ArrowDown")
    tab_to(page, "Signature")
    page.tell("Input.insertText", text=ALICE.sign(made["approval"]["signing_text"]))
    tab_to(page, "Sign and accept")
    press_key(page, "Enter")
    page.wait("document.querySelector('dialog')?.innerText ?? ''", lambda shown: shown == "")
    wait_for(page, "Waits for one more signature")
    assert page.run("document.activeElement.textContent") == "Sign and accept"
    approval = ask("GET", f"/withdrawals/{made['id']}")["data"]["approval"]
    assert [one["signer_id"] for one in approval["signatures"]] == ["alice"]


PAGES = ("/withdrawals", "/approvals", "/refunds", "/claim-links", "/whitelist", "/signers")
_FAILING = "window.fetch = async () => { throw new TypeError('Failed to fetch'); }; true"


@pytest.mark.sweep
def test_each_page_says_what_to_do_when_the_service_is_away(page: Browser, service: dict[str, Any], tmp_path: Path) -> None:
    signed_in(page, service, KEY_NAME, "/key")
    page.run("window.real = fetch; true")
    for path in PAGES:
        page.run(_FAILING)
        go(page, path)
        assert "Look at your connection" in wait_for(page, "The service can not be reached"), path
        lists(page, tmp_path, f"away{path.replace('/', '-')}")
        page.run("window.fetch = window.real; true")
        press(page, "Try again")
        page.wait("document.querySelector('main .notice.bad') === null")
        go(page, "/key")


@pytest.mark.sweep
def test_a_new_withdrawal_is_looked_at_by_day_and_by_night(
    page: Browser, service: dict[str, Any], ask: Ask, tmp_path: Path
) -> None:
    funded(ask)
    signed_in(page, service, KEY_NAME, "/withdrawals/new")
    press(page, "Go on")
    wait_for(page, "To address is required")
    lists(page, tmp_path, "new-wrong")
    fill(page, {"Coin": "eth@ethereum", "To address": PAYEE[:-1], "Amount": "1000"})
    press(page, "Go on")
    wait_for(page, "This is no address of ethereum")
    assert page.run("[...document.querySelectorAll('main button')].find(each => each.textContent.startsWith('Send')).disabled")
    lists(page, tmp_path, "check-bad")
    press(page, "Change something")
    fill(page, {"To address": PAYEE, "Amount": "0.75"})
    press(page, "Go on")
    wait_for(page, "are left afterwards")
    lists(page, tmp_path, "check-good")
    # The answer is lost; the same button makes no second withdrawal.
    page.run("""(() => { const real = fetch; window.fetch = async (...asked) => {
        await real(...asked);
        window.fetch = real;
        throw new TypeError('Failed to fetch');
    }; })()""")
    press(page, "Send 0.75 ETH")
    wait_for(page, "Send it again with the button below")
    lists(page, tmp_path, "check-lost")
    press(page, "Send 0.75 ETH")
    wait_for(page, "On the chain")
    assert ask("GET", "/withdrawals?limit=1&amount=0.75")["meta"]["pagination"]["total"] == 1
    lists(page, tmp_path, "made")
    made = page.run("location.hash").rpartition("/")[2]
    if ask("GET", f"/withdrawals/{made}")["data"]["status"] == "pending":
        press(page, "Cancel")
        press(page, "Not now")
    go(page, "/withdrawals")
    lists(page, tmp_path, "list")
