"""Wallets in the browser's page, for tests: what the page asks of one is answered here, and so is a node's answer to it.

The page's wallet keeps each request until Python has answered it: `answer` takes the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.browser import Browser

Answer = Callable[[str, list[Any]], Any]

_PENDING = """
window.asked = [];
window.answered = [];
const ask = (method, params) => new Promise((resolve, reject) => {
  window.asked.push({ method, params: params ?? [] });
  window.answered.push({ resolve, reject });
});
window.settle = (place, said) => {
  const { resolve, reject } = window.answered[place];
  if ("error" in said) reject(said.error);
  else resolve(said.result);
};
"""
_EVM = """
(() => { %s
const provider = { request: ({ method, params }) => ask(method, params), on() {}, removeListener() {} };
const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({
  info: %s, provider }) }));
window.addEventListener("eip6963:requestProvider", announce);
announce();
})();
"""
_TRON = """
(() => { %s
window.tron = { isTronLink: true, request: ({ method, params }) => ask(method, params),
  tronWeb: { defaultAddress: { base58: null }, trx: { sign: (transaction) => ask("sign", [transaction]) } } };
})();
"""
FOX = {
    "uuid": "350670db-19fa-4704-a166-e52e178b59d2",
    "name": "Test Fox",
    "icon": "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><rect fill='orange' width='99' height='99'/></svg>",
    "rdns": "example.fox",
}


class Declined(Exception):
    """The payer says no."""


class PageWallet:
    """A wallet in the page, injected before its scripts run. `answer(method, params)` may raise Declined, or `Refusal`."""

    def __init__(self, page: Browser, source: str, answer: Answer) -> None:
        self._page, self._answer, self._place = page, answer, 0
        self.asked: list[str] = []
        self._script = page.tell("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]

    def serve(self, done: str, accepted: Callable[[Any], bool] = bool) -> Any:
        """Answer what is asked until the expression `done` is accepted; its value."""

        def step(found: list[Any]) -> bool:
            for each in found[0][self._place :]:
                self._settle(each)
            return accepted(found[1])

        return self._page.wait(f"[window.asked ?? [], {done}]", step)[1]

    def _settle(self, request: Mapping[str, Any]) -> None:
        place, self._place = self._place, self._place + 1
        self.asked.append(request["method"])
        try:
            said: dict[str, Any] = {"result": self._answer(request["method"], request["params"])}
        except Declined:
            said = {"error": {"code": 4001, "message": "User rejected the request."}}
        except Refusal as refusal:
            said = {"error": {"code": refusal.code, "message": str(refusal)}}
        self._page.run(f"window.settle({place}, {json.dumps(said)})")

    def reloaded(self) -> None:
        """The page was loaded anew: its requests are counted from the first on."""
        self._place = 0

    def remove(self) -> None:
        self._page.tell("Page.removeScriptToEvaluateOnNewDocument", identifier=self._script)


class Refusal(Exception):
    """A wallet's or node's error by its code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def evm_wallet(page: Browser, answer: Answer, info: Mapping[str, Any] = FOX) -> PageWallet:
    """A wallet that announces itself (EIP-6963)."""
    return PageWallet(page, _EVM % (_PENDING, json.dumps(dict(info))), answer)


def tron_wallet(page: Browser, answer: Answer) -> PageWallet:
    """A wallet like TronLink (TIP-1193)."""
    return PageWallet(page, _TRON % _PENDING, answer)
