"""Sealing that a test can look through, and that fails when told to."""

from __future__ import annotations

from chalicelib.domain.ids import TenantId
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.secrets import NotOurs


class PlainSeals:
    """The ports Sealer and Opener, without a key: the secret backwards, and whose it is. `asked` is how often each was."""

    def __init__(self) -> None:
        self.down = False
        self.asked: list[str] = []

    def seal(self, tenant: TenantId, endpoint_id: str, secret: str) -> str:
        self._ask("seal")
        return f"{tenant}/{endpoint_id}/{secret[::-1]}"

    def open(self, tenant: TenantId, endpoint_id: str, sealed: str) -> str:
        self._ask("open")
        whose = f"{tenant}/{endpoint_id}/"
        if not sealed.startswith(whose):
            raise NotOurs("sealed for something else")
        return sealed.removeprefix(whose)[::-1]

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if self.down:
            raise Unavailable("no answer")
