"""Secrets of webhooks at rest: what opens where, what a rotation does to them, rows from before, and a KMS that is down."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.stub import Stubber

from chalicelib.delivery.secrets import KmsOpener, KmsSealer
from chalicelib.domain.errors import NotFound
from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.settings import Settings
from chalicelib.usecases.ports.changes import Change, Conflict, Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.secrets import NotOurs
from chalicelib.usecases.webhooks.endpoints import Webhooks
from chalicelib.usecases.webhooks.signing_secrets import opened
from tests.support.custody import kms_of, unreachable_kms
from tests.support.memory_store import HandClock, MemoryQueues, MemoryStore
from tests.support.secrets import PlainSeals
from tests.support.webhooks import NOW, OTHER, SECRET, SHOP, an_endpoint

SETTINGS = Settings(stage="prod")
URL = "https://shop.example/hook"


class Counted:
    """KMS, and what it was asked."""

    def __init__(self, kms: Any) -> None:
        self._kms = kms
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._kms, name)


@pytest.fixture(name="kms", scope="module")
def _kms() -> Iterator[Any]:
    with kms_of(SETTINGS) as kms:
        yield kms


def sealer(kms: Any, settings: Settings = SETTINGS) -> KmsSealer:
    return KmsSealer(lambda: kms, settings)


def opener(kms: Any, settings: Settings = SETTINGS) -> KmsOpener:
    return KmsOpener(lambda: kms, settings)


# --- KMS ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [SECRET, "x" * 256, "\U0001f511" * 256])
def test_what_was_sealed_opens_and_shows_nothing(kms: Any, secret: str) -> None:
    sealed = sealer(kms).seal(SHOP, "wh_1", secret)
    assert secret.encode() not in base64.b64decode(sealed) and secret not in sealed
    assert sealed != sealer(kms).seal(SHOP, "wh_1", secret)
    assert opener(kms).open(SHOP, "wh_1", sealed) == secret


def test_it_opens_for_its_endpoint_its_merchant_and_its_stage_alone(kms: Any) -> None:
    sealed = sealer(kms).seal(SHOP, "wh_1", SECRET)
    key = kms.describe_key(KeyId=SETTINGS.key_alias("webhooks"))["KeyMetadata"]["KeyId"]
    demo = Settings(stage="demo")
    kms.create_alias(AliasName=demo.key_alias("webhooks"), TargetKeyId=key)
    own = opener(kms)
    assert own.open(SHOP, "wh_1", sealed) == SECRET, "remembered for this endpoint, and for no other"
    for settings, tenant, endpoint in ((SETTINGS, SHOP, "wh_2"), (SETTINGS, OTHER, "wh_1"), (demo, SHOP, "wh_1")):
        for opens in (own, opener(kms)) if settings is SETTINGS else (opener(kms, settings),):
            with pytest.raises(NotOurs):
                opens.open(tenant, endpoint, sealed)


def test_what_is_no_ciphertext_or_an_altered_one_does_not_open(kms: Any) -> None:
    sealed = bytearray(base64.b64decode(sealer(kms).seal(SHOP, "wh_1", SECRET)))
    sealed[-1] ^= 1
    for stored in (SECRET, "", "é", *(base64.b64encode(data).decode() for data in (sealed, b"short"))):
        with pytest.raises(NotOurs) as error:
            opener(kms).open(SHOP, "wh_1", stored)
        assert not stored or stored not in str(error.value)


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        ("InvalidCiphertextException", NotOurs),
        ("IncorrectKeyException", NotOurs),  # moto has AccessDeniedException for it
        ("AccessDeniedException", Unavailable),
        ("ThrottlingException", Unavailable),
        ("DisabledException", Unavailable),
        ("KMSInternalException", Unavailable),
    ],
)
def test_only_what_speaks_of_the_ciphertext_is_taken_for_its_fault(kms: Any, code: str, raised: type[Exception]) -> None:
    sealed = sealer(kms).seal(SHOP, "wh_1", SECRET)
    with Stubber(kms) as stub:
        stub.add_client_error("decrypt", code, f"about {SECRET}")
        with pytest.raises(raised, match=code) as error:
            opener(kms).open(SHOP, "wh_1", sealed)
    assert SECRET not in str(error.value) and error.value.__context__ is None


def test_kms_is_asked_once_for_what_opens_and_each_time_for_what_does_not(kms: Any) -> None:
    counted = Counted(kms)
    opens, sealed = opener(counted), sealer(kms).seal(SHOP, "wh_1", SECRET)
    assert {opens.open(SHOP, "wh_1", sealed) for _ in range(5)} == {SECRET}
    assert counted.asked == ["decrypt"]
    for _ in range(2):
        with pytest.raises(NotOurs):
            opens.open(SHOP, "wh_2", sealed)
    assert counted.asked == ["decrypt"] * 3
    assert SECRET not in repr(opens) + repr(opens._remembered)


def test_where_kms_is_away_or_refuses_nothing_is_said_of_the_secret(kms: Any) -> None:
    sealed = sealer(kms).seal(SHOP, "wh_1", SECRET)
    nobody = Settings(stage="local")  # has no such key here
    for act in (
        lambda: sealer(unreachable_kms()).seal(SHOP, "wh_1", SECRET),
        lambda: opener(unreachable_kms()).open(SHOP, "wh_1", sealed),
        lambda: sealer(kms, nobody).seal(SHOP, "wh_1", SECRET),
        lambda: opener(kms, nobody).open(SHOP, "wh_1", sealed),
    ):
        with pytest.raises(Unavailable) as error:
            act()
        assert SECRET not in str(error.value) and error.value.__context__ is None


# --- Endpoints ------------------------------------------------------------------------------------------------------------


class Shop:
    """Endpoints of a merchant, over seals that a test can look through."""

    def __init__(self) -> None:
        self.store, self.seals, self.clock = MemoryStore(), PlainSeals(), HandClock(NOW)
        self.webhooks = Webhooks(self.store, MemoryQueues(), self.clock, self.seals)

    def opened(self, id: str) -> tuple[str, ...]:
        return opened(self.seals, self.webhooks.get(SHOP, id), self.clock.now)

    def before(self, **more: Any) -> WebhookEndpoint:
        """A row from before secrets were sealed."""
        endpoint = replace(an_endpoint("wh_old"), **more)
        self.store.commit([Save(endpoint)])
        return endpoint


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_rotation_seals_the_new_secret_and_moves_the_sealed_one_of_before(shop: Shop) -> None:
    first = shop.webhooks.register(SHOP, URL, ["*"])
    second = shop.webhooks.rotate_secret(SHOP, first.endpoint.id, 60)
    assert second.endpoint.previous_secret == first.endpoint.secret
    assert shop.seals.asked == ["seal", "seal"], "once for each secret; nothing was opened"
    assert shop.opened(first.endpoint.id) == (second.secret, first.secret)
    third = shop.webhooks.rotate_secret(SHOP, first.endpoint.id, 0, "a secret of my own")
    assert shop.opened(first.endpoint.id) == ("a secret of my own",) == (third.secret,)
    shown = (first, second, third)
    assert not [each for each in shown if each.secret in repr(each) or each.endpoint.secret in repr(each)]


def test_a_row_from_before_is_read_as_it_is_and_sealed_when_it_is_written(shop: Shop) -> None:
    row = shop.before(previous_secret="an older secret", previous_until=NOW + 1000)
    assert shop.opened(row.id) == (SECRET, "an older secret")
    assert shop.webhooks.update(SHOP, row.id) == row, "nothing changed, nothing written"
    changed = shop.webhooks.update(SHOP, row.id, events=["invoice.created"])
    assert changed.sealed and SECRET not in changed.secret and "older" not in str(changed.previous_secret)
    assert (changed.version, changed.previous_until) == (row.version + 1, row.previous_until)
    assert shop.opened(row.id) == (SECRET, "an older secret")
    again = shop.webhooks.update(SHOP, row.id, events=["*"])
    assert (again.secret, again.previous_secret) == (changed.secret, changed.previous_secret)


def test_a_secret_that_signs_no_more_is_not_sealed_but_forgotten(shop: Shop) -> None:
    row = shop.before(previous_secret="an older secret", previous_until=NOW)
    changed = shop.webhooks.update(SHOP, row.id, events=["invoice.created"])
    assert (changed.previous_secret, changed.previous_until, shop.seals.asked) == (None, None, ["seal"])


@pytest.mark.parametrize("overlap", [0, 60])
def test_a_rotation_of_a_row_from_before_seals_what_stays(shop: Shop, overlap: int) -> None:
    row = shop.before(previous_secret="an older secret", previous_until=NOW + 1000)
    rotated = shop.webhooks.rotate_secret(SHOP, row.id, overlap)
    assert shop.opened(row.id) == (rotated.secret, SECRET)[: 2 if overlap else 1]
    assert shop.seals.asked.count("seal") == (2 if overlap else 1)
    stored = rotated.endpoint
    assert stored.sealed and not {SECRET, rotated.secret} & {stored.secret, stored.previous_secret}


def test_a_decision_that_is_made_again_seals_nothing_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    id = shop.webhooks.register(SHOP, URL, ["*"]).endpoint.id
    tries = []
    commit = shop.store.commit

    def contended(changes: Sequence[Change]) -> None:
        tries.append(1)
        if len(tries) < 4:
            raise Conflict(None)
        commit(changes)

    monkeypatch.setattr(shop.store, "commit", contended)
    shop.seals.asked.clear()
    rotated = shop.webhooks.rotate_secret(SHOP, id, 60)
    assert (len(tries), shop.seals.asked) == (4, ["seal"])
    assert shop.opened(id)[0] == rotated.secret
    tries.clear()
    shop.seals.asked.clear()
    shop.webhooks.register(SHOP, URL, ["*"])
    assert (len(tries), shop.seals.asked) == (4, ["seal"])


def test_where_nothing_can_be_sealed_nothing_is_made_or_changed(shop: Shop) -> None:
    id = shop.webhooks.register(SHOP, URL, ["*"]).endpoint.id
    row = shop.before()
    stored = dict(shop.store.records)
    shop.seals.down = True
    for act in (
        lambda: shop.webhooks.register(SHOP, URL, ["*"]),
        lambda: shop.webhooks.rotate_secret(SHOP, id, 60),
        lambda: shop.webhooks.rotate_secret(SHOP, row.id, 60),
        lambda: shop.webhooks.update(SHOP, row.id, events=["invoice.created"]),
    ):
        with pytest.raises(Unavailable):
            act()
    assert shop.store.records == stored
    shop.webhooks.update(SHOP, id, events=["invoice.created"])
    shop.seals.asked.clear()
    with pytest.raises(NotFound):
        shop.webhooks.rotate_secret(SHOP, "wh_never", 60)
    assert shop.seals.asked == [], "KMS is asked for endpoints that there are"


def test_a_secret_that_was_moved_between_endpoints_signs_nothing(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    one, two = (shop.webhooks.register(SHOP, URL, ["*"]) for _ in range(2))
    moved = replace(one.endpoint, secret=two.endpoint.secret)
    assert opened(shop.seals, moved, NOW) == ()
    assert one.endpoint.id in caplog.text and two.secret not in caplog.text
    kept = replace(one.endpoint, previous_secret=two.endpoint.secret, previous_until=NOW + 1)
    assert opened(shop.seals, kept, NOW) == (one.secret,)
