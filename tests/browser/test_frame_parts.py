"""Forms, dialogs, polling and failures of the frame, in the browser: modules of ours draw into an empty corner of the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from chalicelib.web import files
from tests.support.axe import axe
from tests.support.browser import Browser
from tests.support.pages import fill, go, press, press_key, signed_in, text, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.sweep]

HOSTILE = "<img src=x onerror=\"window.hacked='1'\"><script>window.hacked=1</script>"


@pytest.fixture
def corner(page: Browser, service: dict[str, Any]) -> Iterator[Browser]:
    """The page "This key", with our modules by their names in `M`, and an empty corner to draw into."""
    signed_in(page, service, "client_test", "/key")
    names = {name: files.named(f"app/{name}.js") for name in ("form", "dialog", "list", "parts", "ui", "api", "use")}
    page.run(
        f"""(async () => {{
        window.M = {{}};
        for (const file of {json.dumps(list(names.values()))}) {{
            Object.assign(M, await import(`${{document.baseURI}}openapi/${{file}}`));
        }}
        document.querySelector('main').replaceChildren(Object.assign(document.createElement('div'), {{ id: 'corner' }}));
        window.draw = (node) => M.render(node, document.getElementById('corner'));
        window.sent = [];
        return true;
    }})()"""
    )
    yield page
    assert page.run("window.hacked") is None


def test_a_form_sends_once_and_keeps_its_key_until_the_content_changes(corner: Browser) -> None:
    corner.run(
        """draw(M.html`<${M.Form} fields=${[{ name: 'a', label: 'A', required: true }]} action="Send"
        submit=${async (values, { key }) => { sent.push([values.a, key]); await new Promise((done) => { window.answer = done; });
        throw new M.ApiFailure('The service did not answer within 30 seconds.', { code: 'NO_ANSWER' }); }} />`)"""
    )
    fill(corner, {"A": "one"})
    for _ in range(3):
        press(corner, "Send")
    corner.wait("document.querySelector('#corner button[aria-busy]') !== null")
    corner.run("answer()")
    assert "the same request is never done twice" in wait_for(corner, "did not answer")
    press(corner, "Send")
    corner.wait("sent.length === 2")
    corner.run("answer()")
    fill(corner, {"A": "two"})
    corner.wait("document.querySelector('#corner button[aria-busy]') === null")
    press(corner, "Send")
    corner.wait("sent.length === 3")
    corner.run("answer()")
    sent = corner.run("sent")
    assert [value for value, _ in sent] == ["one", "one", "two"]
    assert sent[0][1] == sent[1][1] != sent[2][1] and len(sent[0][1]) >= 32


def test_what_is_wrong_stands_at_its_field_and_the_first_has_the_focus(corner: Browser) -> None:
    corner.run(f"window.hostile = {json.dumps(HOSTILE)}; 1")
    corner.run(
        """draw(M.html`<${M.Form} action="Send" fields=${[
        { name: 'a', label: 'A', required: true }, { name: 'b', label: hostile, kind: 'amount', required: true, hint: hostile },
        { name: 'c', label: 'C', kind: 'checks', options: ['x', 'y'] },
        { name: 'd', label: 'D', when: (values) => values.a === 'show' }]}
        submit=${async () => {
          const fields = [{ field: 'b', value: 1, constraints: [hostile] },
            { field: 'c[0]', value: 1, constraints: ['is unknown'] }];
          throw new M.ApiFailure('Invalid request parameters', { status: 400, code: 'INVALID_PARAMETER', fields });
        }} />`)"""
    )
    press(corner, "Send")
    corner.wait("document.activeElement?.name === 'a'")
    assert corner.run("document.querySelectorAll('[aria-invalid=true]').length") == 2
    assert corner.run("document.querySelector('[name=d]')") is None
    fill(corner, {"A": "show", HOSTILE: "1,5"})
    corner.wait("document.querySelector('[name=d]') !== null")
    press(corner, "Send")
    wait_for(corner, "without separators")
    fill(corner, {HOSTILE: "1.5"})
    press(corner, "Send")
    assert HOSTILE in wait_for(corner, "is unknown")
    corner.wait("document.activeElement?.name === 'b'")
    assert axe(corner) == []


def test_a_dialog_keeps_the_focus_and_gives_it_back(corner: Browser) -> None:
    corner.tell("Emulation.setFocusEmulationEnabled", enabled=True)
    corner.run(
        f"""(() => {{ const Corner = () => {{ const [asked, ask, close] = M.useDialog();
        return M.html`<button id="opener" onClick=${{() => ask(true)}}>Open</button>
          ${{asked && M.html`<${{M.Ask}} title="Release" words={json.dumps(HOSTILE)} action="Let it go" tone="danger" typed="wd_1"
            run=${{async () => {{ sent.push('run'); return 'done'; }}}}
            close=${{(result) => {{ sent.push(result ?? null); close(); }}}} />`}}`; }};
        draw(M.html`<${{Corner}} />`); }})()"""
    )
    corner.run("document.getElementById('opener').focus()")
    press(corner, "Open")
    corner.wait("document.querySelector('dialog[open]') !== null")
    assert axe(corner) == []
    assert corner.run("document.querySelector('dialog').contains(document.activeElement)")
    press(corner, "Let it go")
    assert corner.run("sent.length") == 0, "not before the name is typed"
    press_key(corner, "Escape")
    corner.wait("document.querySelector('dialog') === null && document.activeElement.id === 'opener'")
    press(corner, "Open")
    fill(corner, {"Type wd_1 to go on": "wd_1"})
    press(corner, "Let it go")
    corner.wait("document.querySelector('dialog') === null")
    assert corner.run("sent") == [None, "run", "done"]


def test_it_polls_at_most_four_times_a_minute_and_only_in_sight(corner: Browser) -> None:
    """With the page's clock twenty times as fast: three components poll, and share four requests a minute."""
    corner.run("Date.now = ((plain, began) => () => began + (plain() - began) * 20)(Date.now, Date.now())")
    corner.run(
        """(() => { const plain = window.fetch; window.fetch = (...asked) => { sent.push(Date.now()); return plain(...asked); };
        const One = ({ path }) => { M.useGet(path, {}, { every: 15 }); return null; };
        draw(M.html`<${One} path="/balances" /><${One} path="/networks" /><${One} path="/merchant" />`); })()"""
    )
    corner.wait("sent.length >= 9")
    polls = corner.run("sent.slice(3)")
    assert all(later - earlier >= 14_900 for earlier, later in pairwise(polls)), polls
    corner.run("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })")
    corner.run("window.before = sent.length")
    corner.wait("new Promise((done) => setTimeout(() => done(true), 2500))")
    assert corner.run("sent.length - before") <= 1, "one may have been on its way"


def test_a_poll_waits_for_the_answer_to_the_last_one(corner: Browser) -> None:
    """A service that hangs becomes a failure after 30 seconds: no poll may begin anew before."""
    corner.run("Date.now = ((plain, began) => () => began + (plain() - began) * 20)(Date.now, Date.now())")
    corner.run(
        """(() => { window.fetch = () => { sent.push(Date.now()); return new Promise(() => {}); };
        const One = () => { M.useGet('/balances', {}, { every: 15 }); return null; };
        draw(M.html`<${One} />`); })()"""
    )
    corner.wait("new Promise((done) => setTimeout(() => done(true), 3500))")
    assert corner.run("sent.length") == 1


def test_a_failure_says_what_to_do_and_goes_on_by_itself(page: Browser, service: dict[str, Any]) -> None:
    signed_in(page, service, "client_test", "/key")
    page.tell("Network.setBlockedURLs", urls=["*/v1/balances*", "*portal-search*"])
    try:
        go(page, "/balances")
        assert "Look at your connection" in wait_for(page, "can not be reached")
        go(page, "/search")
        assert "You stay signed in" in wait_for(page, "could not be loaded")
    finally:
        page.tell("Network.setBlockedURLs", urls=[])
    go(page, "/balances")
    if "can not be reached" in text(page):
        press(page, "Try again")
    page.wait("!document.querySelector('main').innerText.includes('can not be reached')")
    page.complaints[:] = [said for said in page.complaints if "ERR_BLOCKED" not in said]


def test_the_key_goes_to_its_own_origin_alone(corner: Browser, service: dict[str, Any]) -> None:
    corner.run(
        """(() => { const plain = window.fetch; window.fetch = (url, settings) => {
        sent.push([new URL(url, location.href).origin, settings.mode, settings.credentials, settings.redirect,
          settings.referrerPolicy,
          'X-Api-Key' in settings.headers]); return plain(url, settings); }; })()"""
    )
    hostile = ["https://x.example/a", "//x.example/a", "/\\\\x.example/a", "/../../x", "/a?b=https://x.example", "a"]
    for path in hostile:
        assert corner.run(f"M.get({json.dumps(path)}).then(() => 'sent', (error) => error.name)") == "TypeError"
    corner.run("M.get('/balances').then(() => 1)")
    origin = service["base_url"].removesuffix("/api")
    assert corner.run("sent") == [[origin, "same-origin", "omit", "error", "no-referrer", True]]
