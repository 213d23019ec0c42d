"""Steps of a person in the portal and the console: signing in, going somewhere, filling in a form, reading what is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.browser import Browser

REFUSED = "Failed to load resource: the server responded with a status of 4"
"""What Chromium itself writes of an answer such as 404."""
READY = "document.querySelector('main h1') && !document.querySelector('main .loading')"
"""Whether a page is drawn with what it was waiting for."""
_SET = """(() => {{
    const scope = document.querySelector('dialog[open]') ?? document;
    const label = [...scope.querySelectorAll('label, legend')].filter(each => each.checkVisibility())
        .find(each => each.textContent.replace('(optional)', '').replace(/\\s+/g, ' ').trim() === {label});
    if (!label) throw new Error('no field called ' + {label});
    const field = label.htmlFor ? document.getElementById(label.htmlFor) : label.querySelector('input');
    if (field.type === 'checkbox') {{ if (field.checked !== {value}) field.click(); return true; }}
    const kind = {{ TEXTAREA: HTMLTextAreaElement, SELECT: HTMLSelectElement }}[field.tagName] ?? HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(field, {value});
    field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', {{ bubbles: true }}));
    return true;
}})()"""
_PRESS = """(() => {{
    const scope = document.querySelector('dialog[open]') ?? document;
    const found = [...scope.querySelectorAll('button, a, [role=tab], summary')].filter(each => each.checkVisibility())
        .find(each => each.textContent.replace(/\\s+/g, ' ').trim() === {label} || each.getAttribute('aria-label') === {label});
    if (!found) throw new Error('no button called ' + {label});
    found.click();
    return true;
}})()"""


_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowDown": 40}
"""Windows' virtual codes of keys, as the protocol names them."""


def press_key(page: Browser, name: str, times: int = 1) -> None:
    """A key of the keyboard, pressed and let go."""
    for _ in range(times):
        written = {"text": "\r"} if name == "Enter" else {}
        page.tell("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=_CODES[name], **written)
        page.tell("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=_CODES[name])


ONCE = "document.querySelector('dialog[open] .secret code')?.textContent"
"""The secret or claim link that is shown once and not stored yet."""


def stored(page: Browser) -> str:
    """What is shown once, after the person said that it is stored."""
    wait_for(page, "It is shown this once: copy it now")
    found = str(page.run(ONCE))
    press(page, "I have stored it")
    wait_for(page, "Is it stored?")
    press(page, "Yes, close it")
    page.wait(f"{ONCE} === undefined")
    return found


def fresh(browser: Browser) -> None:
    """A browser without the marks of the test before."""
    browser.requests.clear()
    browser.complaints.clear()
    browser.size(1280, 900)
    browser.tell("Emulation.setEmulatedMedia", features=[])


def look(page: Browser, *, width: int = 1280, scheme: str = "light") -> None:
    """Look at it as wide as that, by day ("light") or by night ("dark"). Below 600 pixels it is a phone."""
    page.size(width, 844 if width < 600 else 900, phone=width < 600)
    page.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    # A phone shows a page that says nothing of its width, such as an empty one, as a desk would.
    page.wait("location.protocol === 'about:' ? 0 : innerWidth", lambda found: found in (0, width))


def signed_in(page: Browser, service: Mapping[str, Any], key_name: str, path: str = "/", which: str = "portal") -> None:
    """Sign in as a person does, with a key of the stack by its name in the runtime file, and go to `path` ("/invoices?tab=a")."""
    page.open(f"{service['base_url']}/{which}#{path}")
    page.wait("document.querySelector('main.alone form') !== null && location.pathname.length > 1")
    fill(page, {"API key": service["keys"][key_name]})
    press(page, "Sign in")
    page.wait("document.querySelector('.frame') !== null")
    page.wait(READY)


def go(page: Browser, path: str) -> None:
    """Go to a page of the portal or the console, and wait until it is drawn."""
    page.run(f"location.hash = {json.dumps('#' + path)}")
    page.wait(f"location.hash === {json.dumps('#' + path)}")
    # The heading of the page before must be gone first.
    page.wait("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(true))))")
    page.wait(READY)


def fill(page: Browser, values: Mapping[str, Any]) -> None:
    """Type into fields by their labels, of a dialog where one is open; True or False for a check box."""
    for label, value in values.items():
        page.wait(_SET.format(label=json.dumps(label), value=json.dumps(value)))


def press(page: Browser, label: str) -> None:
    """Press a button or follow a link by its text; in a dialog, where one is open."""
    page.run(_PRESS.format(label=json.dumps(label)))


def text(page: Browser) -> str:
    """What can be read in the page's main part, and in a dialog that is open."""
    return str(page.run("(document.querySelector('dialog[open]') ?? document.querySelector('main')).innerText"))


def wait_for(page: Browser, words: str) -> str:
    """The text of the page as soon as these words are in it."""
    where = "(document.querySelector('dialog[open]') ?? document.querySelector('main'))?.innerText ?? ''"
    return str(page.wait(where, lambda found: words in found))
