"""Webhook rules: signatures against published vectors, bodies against JSON.stringify, and which URLs may be called."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.domain.ids import TenantId
from chalicelib.domain.webhooks.endpoints import (
    WebhookEndpoint,
    event_record,
    new_secret,
    secret_problem,
    signature_headers,
    standard_key,
)
from chalicelib.domain.webhooks.events import EVENT_NAMES, Event, names_problem
from chalicelib.domain.webhooks.urls import is_allowed, is_public, url_problems

SHOP = TenantId("mch_shop:live")
NOW = 1_767_323_045_006
ENDPOINT = WebhookEndpoint(SHOP, "wh_1", "https://shop.example/hook", ("*",), "a secret of the shop", NOW)
EVENT = Event("evt_1", SHOP, "invoice.completed", "inv_1", 3, NOW, {"id": "inv_1"})
STAMP = "2026-01-02T03:04:05.006Z"


def test_the_gateway_signature_is_the_published_hmac_vector() -> None:
    # GitHub's vector for testing a receiver (docs.github.com, "Validating webhook deliveries"): the same form,
    # "sha256=" and HMAC-SHA256 in hex over the exact bytes, keyed with the secret's text.
    endpoint = replace(ENDPOINT, secret="It's a Secret to Everybody")
    headers = signature_headers(endpoint.signing(NOW), "evt_1", b"Hello, World!", NOW)
    assert headers["x-gateway-signature"] == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def test_the_standard_signature_is_the_published_vector() -> None:
    # The vector in the test suites of the Standard Webhooks libraries.
    endpoint = replace(ENDPOINT, secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signature_headers(endpoint.signing(NOW), "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', 1_614_265_330_999)
    assert headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert headers["webhook-timestamp"] == "1614265330"
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_previous_secret_signs_until_its_time_and_not_after() -> None:
    old = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    rotated = replace(ENDPOINT, secret="the new secret, long", previous_secret=old, previous_until=NOW)
    before = signature_headers(rotated.signing(NOW - 1), "evt_1", b"{}", NOW - 1)
    at = signature_headers(rotated.signing(NOW), "evt_1", b"{}", NOW)
    of_old = signature_headers([old], "evt_1", b"{}", NOW - 1)
    of_new = signature_headers(["the new secret, long"], "evt_1", b"{}", NOW - 1)
    assert before["webhook-signature"] == f"{of_new['webhook-signature']} {of_old['webhook-signature']}"
    assert before["x-gateway-signature"] == of_new["x-gateway-signature"]
    assert before["x-gateway-signature-previous"] == of_old["x-gateway-signature"]
    assert " " not in at["webhook-signature"]
    assert "x-gateway-signature-previous" not in at


def test_secrets_are_in_no_repr() -> None:
    endpoint = replace(ENDPOINT, secret="hidden-hidden-hidden", previous_secret="veiled-veiled-veiled", previous_until=NOW)
    assert "hidden" not in repr(endpoint)
    assert "veiled" not in repr(endpoint)


@pytest.mark.parametrize(
    "secret", ["0123456789abcdef", "x" * 256, "sixteen ünïcode!", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_" + "ab" * 13]
)
def test_a_good_secret_has_no_problem(secret: str) -> None:
    assert secret_problem(secret) is None


@pytest.mark.parametrize(
    "secret",
    ["", "0123456789abcde", "x" * 257, "0123456789abcde\n", "0123456789abcd\ud800f", 1234567890123456, None,
     "whsec_" + "A" * 20, "whsec_this is not base64 at all", "whsec_" + "ä" * 30, "whsec_" + "_" * 32],
)  # fmt: skip
def test_a_bad_secret_has_one(secret: object) -> None:
    assert secret_problem(secret)


def test_a_made_secret_is_good_and_never_the_same() -> None:
    made = {new_secret() for _ in range(50)}
    assert len(made) == 50
    assert all(secret_problem(secret) is None and len(standard_key(secret)) == 32 for secret in made)


def test_the_body_is_what_json_stringify_writes() -> None:
    # The text on the right was printed by Node.js 20: JSON.stringify({id: "evt_1", event: ..., data: {...}, ...}).
    data = {
        "name": "Zürich €", "emoji": "😀", "half": "\ud83d!", "low": "\ude00", "ctrl": '\x01\x1f\b\f\n\r\t"\\/', "del": "\x7f",
        "sep": "\u2028", "n": [1.0, 0.5, 12.35, 0, -3.0], "none": None, "yes": True, "deep": {"z": (), "a": {}},
    }  # fmt: skip
    body = event_record(replace(EVENT, data=data), STAMP, NOW).body
    assert body == (
        '{"id":"evt_1","event":"invoice.completed","data":{"name":"Z\xfcrich \u20ac","emoji":"\U0001f600","half":"\\ud83d!",'
        '"low":"\\ude00","ctrl":"\\u0001\\u001f\\b\\f\\n\\r\\t\\"\\\\/","del":"\x7f","sep":"\u2028","n":[1,0.5,12.35,0,-3],'
        '"none":null,"yes":true,"deep":{"z":[],"a":{}}},"timestamp":"2026-01-02T03:04:05.006Z","sequence":3}'
    )


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists), max_size=5))
def test_any_body_can_be_sent_and_reads_back(data: dict[str, object]) -> None:
    record = event_record(replace(EVENT, data=data), STAMP, NOW)
    assert json.loads(record.body.encode("utf-8"))["data"] == data


@pytest.mark.parametrize("data", [{"usd": float("nan")}, {"usd": float("inf")}])
def test_what_json_has_no_form_for_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        event_record(replace(EVENT, data=data), STAMP, NOW)


def test_an_event_is_kept_thirty_days_whatever_time_it_bears() -> None:
    year = 365 * 24 * 3600
    for at in (NOW, NOW + 1000 * year, NOW - 1000 * year):
        assert event_record(replace(EVENT, at=at), STAMP, NOW).ttl == 1_767_323_045 + 30 * 24 * 3600


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["invoice.created", "invoice.made"], '"invoice.made" is not an event; allowed: "*", "transaction.detected", '),
        (["invoice.made", 3, {"a": 1}, "invoice.made"], '"invoice.made", 3, {"a": 1} are not events; allowed: "*"'),
        ([f"e{n}" for n in range(9)], '"e0", "e1", "e2", "e3", "e4" and 4 more are not events; allowed: '),
        (["\ud800" + "x" * 999], '"\\ud800' + "x" * 53 + " is not an event"),
        ([], 'must be a list of at least one of: "*", '),
        ("*", "must be a list of at least one of: "),
        (None, "must be a list of at least one of: "),
    ],
)
def test_an_error_says_which_names_are_unknown(names: object, said: str) -> None:
    problem = names_problem(names)
    assert problem is not None and problem.startswith(said) and problem.endswith('"webhook.disabled"')


def test_known_names_are_no_problem() -> None:
    assert names_problem(["*"]) is None and names_problem(EVENT_NAMES) is None


@pytest.mark.parametrize(
    "url",
    ["https://shop.example/hook", "https://shop.example", "https://shop.example:443/", "https://shop.example:8443/a?b=c&d=%20",
     "https://a.b-c.xn--bcher-kva.example/@me", "https://93.184.215.14/x", "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/x",
     "https://shop.example/" + "a" * 2027],
)  # fmt: skip
def test_a_public_https_url_is_fine(url: str) -> None:
    assert url_problems(url) == []


@pytest.mark.parametrize(
    "url",
    ["", None, 5, ["https://shop.example"], "shop.example/hook", "//shop.example", "http://shop.example", "ftp://shop.example",
     "file:///etc/passwd", "javascript:alert(1)", "https://", "https:///hook", "https://user@shop.example",
     "https://user:pw@shop.example", "https://:@shop.example/", "https://shop.example/#x", "https://shop.example/#",
     "https://shop.example:22/", "https://shop.example:80/", "https://shop.example:0/", "https://shop.example:65536/",
     "https://shop.example:x/", "https://localhost/", "https://LOCALHOST/", "https://a.localhost/", "https://printer.local",
     "https://vault.internal/", "https://intranet/", "https://127.0.0.1/", "https://127.1/", "https://2130706433/",
     "https://0x7f000001/", "https://0x7f.1/", "https://0177.0.0.1/", "https://017700000001/", "https://1.2.3.4.5/",
     "https://169.254.169.254/latest/meta-data/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[fd00:ec2::254]/",
     "https://[fe80::1%25eth0]/", "https://[::1", "https://shop.example\\@127.0.0.1/", "https://shop.example/a b",
     "https://shop.example/\r\nx: y", "https://bücher.example/", "https://-a.example/", "https://a..example/", "https://shop.example./",
     "https://" + "a" * 64 + ".example/", "https://" + "a." * 130 + "example/", "https://shop.example/" + "a" * 2028],
)  # fmt: skip
def test_other_urls_are_not(url: object) -> None:
    assert url_problems(url) != []


def test_the_local_stack_may_call_itself() -> None:
    for url in ("http://127.0.0.1:4000/hook", "http://localhost:4000", "https://10.0.0.5/", "http://receiver:80/"):
        assert url_problems(url, allow_private=True) == []
    assert url_problems("ftp://127.0.0.1/", allow_private=True)
    assert url_problems("http://user@127.0.0.1/", allow_private=True)


BESIDE = [
    "169.254.169.254", "169.254.170.2", "169.254.0.1", "169.254.255.255", "100.100.100.200", "192.0.0.192", "168.63.129.16",
    "fe80::1", "febf::1", "fec0::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe",
    "::169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601", "2001:0:a9fe:a9fe::1", "2a00::5efe:169.254.169.254", "2a00::200:5efe:a9fe:a9fe",
    "2606:4700::1%eth0",
]  # fmt: skip


@pytest.mark.parametrize("address", BESIDE)
def test_no_setting_lets_webhooks_reach_what_answers_for_the_machine_itself(address: str) -> None:
    """A developer's machine in a cloud has credentials, too: only what is private is allowed there, not what is beside it."""
    for private in (True, False):
        assert not is_allowed(address, allow_private=private)
        assert url_problems(f"https://[{address}]/" if ":" in address else f"https://{address}/", allow_private=private)


@pytest.mark.parametrize(
    "host",
    ["2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "169.254.43518", "169.16689662", "169.254.169.254.",
     "[::ffff:169.254.169.254%25lo]", "[fe80::1%25eth0]", "１６９.254.169.254", "169。254。169。254"],
)  # fmt: skip
def test_other_spellings_of_such_an_address_are_none_of_a_host(host: str) -> None:
    assert url_problems(f"http://{host}/latest/meta-data/", allow_private=True)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.5", "192.168.1.9", "172.16.0.1", "::1", "fd12:3456::1", "fc00::1", "8.8.8.8"]
)
def test_private_addresses_are_the_local_stacks_own(address: str) -> None:
    assert is_allowed(address, allow_private=True)


@pytest.mark.parametrize(
    "address",
    # First and last addresses of the blocks in IANA's special-purpose registries that are not globally reachable.
    ["0.0.0.1", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255",
     "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.1", "192.88.99.1",
     "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
     "239.255.255.255", "240.0.0.0", "255.255.255.255",
     "::", "::1", "::127.0.0.1", "::ffff:0:0", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "64:ff9b::a00:1", "64:ff9b::808:808",
     "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:db8::1",
     "2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
     "2606:4700::1%eth0", "fec0::1", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
     "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
     "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1", "2001:4860:4860::8888", "2606:4700:4700::1111", "2a00::1"],
)  # fmt: skip
def test_addresses_next_to_them_are(address: str) -> None:
    assert is_public(address)


def test_text_that_is_no_address_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        is_public("shop.example")
