"""Nothing is signed, or kept, that the second reader reads otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.usecases.ports.second_reader import Built, Reading
from chalicelib.usecases.ports.signing import Signed
from chalicelib.usecases.transactions.errors import OrderMismatch, ReadersDiffer
from chalicelib.usecases.transactions.two_readers import sign_read_twice

DIGESTS = [b"\x01" * 32, b"\x02" * 32]
RAW = Signed("signed bytes", "id")


class Library:
    """A second reader whose answers a test sets."""

    def __init__(self, built: Built | ValueError, read: dict[str, Any] | ValueError) -> None:
        self.answers: dict[str, Any] = {"built": built, "read": read}

    def built(self, order: str) -> Built:
        assert order == "order"
        return self._answer("built")  # type: ignore[no-any-return]

    def read(self, order: str, raw: str) -> Reading:
        assert (order, raw) == ("order", RAW.raw)
        return self._answer("read")  # type: ignore[no-any-return]

    def _answer(self, name: str) -> Any:
        if isinstance(self.answers[name], ValueError):
            raise self.answers[name]
        return self.answers[name]


AGREED = Built((DIGESTS[0], DIGESTS[1]), {"amount": 5, "signer": "wallet"})
READ = {"amount": 5, "signer": "wallet", "txid": "id"}
LIVE: Network = next(network for network in default_networks("live") if network.slug == "ethereum")


SIMULATED: Network = next(network for network in default_networks("test") if network.slug == "ethereum")


def signed(library: Library | None, asked: list[Sequence[bytes]], network: Network = LIVE) -> Signed:
    def sign(digests: Sequence[bytes]) -> Signed:
        asked.append(list(digests))
        return RAW

    return sign_read_twice(network, "order o", library, "order", DIGESTS, sign)


def test_the_key_signs_the_digests_that_were_compared() -> None:
    asked: list[Sequence[bytes]] = []
    assert (signed(Library(AGREED, READ), asked), asked) == (RAW, [DIGESTS])


def test_only_simulated_networks_sign_without_a_second_reader() -> None:
    asked: list[Sequence[bytes]] = []
    assert (signed(None, asked, SIMULATED), asked) == (RAW, [DIGESTS])
    with pytest.raises(LookupError, match="no second reader"):
        signed(None, asked)
    with pytest.raises(LookupError, match="no second reader"):
        signed(None, asked, replace(LIVE, simulated=True))  # as somebody may have written into its record
    assert asked == [DIGESTS]


@pytest.mark.parametrize(
    "built",
    [
        Built((DIGESTS[0], b"\x03" * 32), AGREED.reading),
        Built((DIGESTS[0],), AGREED.reading),
        Built((DIGESTS[1], DIGESTS[0]), AGREED.reading),
        Built((), AGREED.reading),
        ValueError("no such order"),
    ],
    ids=["another", "one less", "order", "none", "refused"],
)
def test_the_key_is_not_asked_where_a_digest_differs(built: Built | ValueError, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Sequence[bytes]] = []
    with pytest.raises(ReadersDiffer) as raised:
        signed(Library(built, READ), asked)
    assert isinstance(raised.value, OrderMismatch) and not raised.value.bytes_only  # nothing is built anew by itself
    assert not asked
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("ALARM live:ethereum: ") and "order o" in line
    if isinstance(built, Built):
        assert DIGESTS[1].hex() in line and "'amount': 5" in line


@pytest.mark.parametrize(
    ("read", "named"),
    [
        ({**READ, "amount": 6}, "amount"),
        ({**READ, "signer": "another"}, "signer"),
        ({**READ, "txid": "another"}, "txid"),
        ({**READ, "data": ""}, "data"),
        ({name: value for name, value in READ.items() if name != "amount"}, "amount"),
        ({}, "amount, signer, txid"),
    ],
)
def test_signed_bytes_are_dropped_where_a_field_differs(read: dict[str, Any], named: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ReadersDiffer, match=f"in {named}$"):
        signed(Library(AGREED, read), [])
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("ALARM live:ethereum: ") and RAW.raw not in line  # who reads the log could send them


def test_signed_bytes_are_dropped_that_the_library_can_not_decode(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ReadersDiffer, match="trailing"):
        signed(Library(AGREED, ValueError("trailing bytes")), [])
    assert "ALARM live:ethereum: " in caplog.text
