"""The sender against real receivers on 127.0.0.1: what it sends, what it makes of answers, and where it refuses to go."""

from __future__ import annotations

import datetime
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from chalicelib.delivery import resolve
from chalicelib.delivery.safe_http import SafeHttpSender
from tests.support.receiver import Receiver, answer, drip, reset

BODY = '{"event":"invoice.completed","data":{"name":"Zürich"}}'.encode()
HEADERS = {"content-type": "application/json", "webhook-id": "evt_1"}
ENDLESS = 20
"""Seconds. The receivers here go on for longer: whoever waits for one to end does not get below this, however slow the machine."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def sender(seconds: float = 5.0) -> SafeHttpSender:
    return SafeHttpSender(allow_private=True, seconds=seconds)


def test_it_posts_exactly_these_bytes(receiver: Receiver) -> None:
    said = sender().send(receiver.url("/hook?shop=1&x=%20"), HEADERS, BODY)
    assert (said.status, said.body, said.error) == (200, b"thanks", None)
    assert 0 <= said.duration < 5000
    (request,) = receiver.received
    assert request.line == "POST /hook?shop=1&x=%20 HTTP/1.1"
    assert request.body == BODY
    assert request.headers["content-length"] == str(len(BODY))
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert {name: request.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize("status", [200, 204, 400, 410, 429, 500, 503])
def test_the_status_is_reported(receiver: Receiver, status: int) -> None:
    receiver.behave(answer(status))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (status, None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(receiver: Receiver, status: int) -> None:
    receiver.behave(answer(status, b"", f"Location: {receiver.url('/elsewhere')}"))
    assert sender().send(receiver.url(), HEADERS, BODY).status == status
    assert receiver.connections == 1


def test_proxies_of_the_environment_are_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert sender().send(receiver.url(), HEADERS, BODY).status == 200


def test_a_huge_answer_is_read_to_64_kib_and_counts(receiver: Receiver) -> None:
    receiver.behave(answer(200, b"x" * 30_000_000))
    start = time.monotonic()
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (200, None)
    assert 60_000 < len(said.body) <= 65_536
    assert time.monotonic() - start < ENDLESS


def test_endless_headers_end_at_64_kib(receiver: Receiver) -> None:
    receiver.behave(drip(b"HTTP/1.1 200 OK\r\n", b"X-Filler: " + b"x" * 9_000 + b"\r\n", 0.0, 1_000))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert len(said.body) <= 65_536
    assert said.duration < 3_000


def test_a_packed_answer_is_not_unpacked(receiver: Receiver) -> None:
    bomb = b"\x1f\x8b\x08\x00" + b"\x00" * 100
    receiver.behave(answer(200, bomb, "Content-Encoding: gzip"))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.body) == (200, bomb)


def test_a_chunked_answer(receiver: Receiver) -> None:
    receiver.behave(
        drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n", b"0\r\n\r\n", 0, 1)
    )
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.body) == (200, b"hello")


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(drip(b"", b"", 30.0, 1), id="silent"),
        pytest.param(drip(b"H", b"", 30.0, 1), id="stops at the first byte"),
        pytest.param(drip(b"HTTP/1.1 200 ", b"O", 0.05, 1200), id="status line byte by byte"),
        pytest.param(drip(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 0.05, 1200), id="header by header"),
    ],
)
def test_an_answer_that_does_not_come_in_time_is_none(receiver: Receiver, behaviour: Callable[[socket.socket], None]) -> None:
    receiver.behave(behaviour)
    start = time.monotonic()
    said = sender(0.5).send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (None, "no answer within 0.5 seconds")
    assert 0.45 < time.monotonic() - start < ENDLESS


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nab",
    ],
)
def test_a_body_byte_by_byte_holds_nobody_up(receiver: Receiver, before: bytes) -> None:
    # The status has come in time and decides; what is left of the body is not waited for.
    receiver.behave(drip(before, b"1", 0.05, 1200))
    start = time.monotonic()
    said = sender(0.5).send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error, said.body[:2]) == (200, None, b"ab")
    assert time.monotonic() - start < ENDLESS


def test_a_receiver_that_reads_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as deaf:
        start = time.monotonic()
        said = sender(0.5).send(f"http://127.0.0.1:{deaf.getsockname()[1]}/", HEADERS, b"x" * 20_000_000)
        assert (said.status, said.error) == (None, "no answer within 0.5 seconds")
        assert time.monotonic() - start < ENDLESS


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(reset, id="reset"),
        pytest.param(lambda connection: None, id="closed without a word"),
        pytest.param(drip(b"SSH-2.0-OpenSSH_9.2\r\n", b"", 0, 1), id="not HTTP"),
        pytest.param(drip(b"HTTP/1.1 2OO OK\r\n\r\n", b"", 0, 1), id="not a status"),
        pytest.param(drip(b"\x00" * 3000, b"", 0, 1), id="zeros"),
    ],
)
def test_a_broken_answer_is_none(receiver: Receiver, behaviour: Callable[[socket.socket], None]) -> None:
    receiver.behave(behaviour)
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert said.status is None
    assert said.error is not None
    assert said.error.startswith("the connection broke")


def test_headers_that_parse_as_messages_within_messages_are_headers(receiver: Receiver) -> None:
    # http.client gives the headers to a parser of mail, for which a CR by itself ends a line.
    nested = b"Content-Type: message/rfc822\r\r" * 1900
    receiver.behave(drip(b"HTTP/1.1 200 OK\r\n" + nested + b"\r\nRetry-After: 7\r\n\r\nok", b"", 0, 1))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.body, said.error, said.retry_after) == (200, b"ok", None, "7")


@pytest.mark.parametrize("size", [b"-FFFFFFFFFFFFFFFFFFFFFF", b"-5", b"F" * 30, b"zz", b"", b"f" * 60_000])
def test_no_size_of_a_chunk_undoes_the_status(receiver: Receiver, size: bytes) -> None:
    receiver.behave(drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\nabc\r\n0\r\n\r\n", b"", 0, 1))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (200, None)


def test_more_than_a_hundred_headers_are_no_answer(receiver: Receiver) -> None:
    receiver.behave(drip(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 101 + b"\r\n", b"", 0, 1))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (None, "the connection broke, or the answer was not HTTP (HTTPException)")


@pytest.mark.parametrize("raised", [RecursionError, OverflowError, KeyError, AssertionError, MemoryError])
def test_whatever_reading_an_answer_raises_is_an_answer_and_logged_once_by_its_kind(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, raised: type[Exception]
) -> None:
    def fail(*_: Any) -> None:
        raise raised("what the receiver said")

    monkeypatch.setattr(http.client, "parse_headers", fail)
    sends = sender()
    for _ in range(2):
        said = sends.send(receiver.url("/a-path-that-only-we-know"), HEADERS, BODY)
        assert (said.status, said.error) == (None, f"the answer could not be read ({raised.__name__})")
    assert [record.getMessage() for record in caplog.records if record.name == "chalicelib.delivery.safe_http"] == [
        f"a receiver made an attempt end in {raised.__name__}; further ones are not logged"
    ]
    assert "only-we-know" not in caplog.text and "what the receiver said" not in caplog.text


def test_an_interrupt_is_not_swallowed(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(http.client, "parse_headers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sender().send(receiver.url(), HEADERS, BODY)


@pytest.mark.parametrize(
    "before",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n" * 3,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nRetry-After: 9\r\n\r\n",
        b"HTTP/1.1 103\n\n",
        b"HTTP/1.1 199 What\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_informational_answers_before_the_final_one_are_skipped(receiver: Receiver, before: bytes) -> None:
    # RFC 9110 section 15.2: a client has to be able to read them even where it did not ask for them.
    final = b"HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nHTTP/1.1 103 Not a line"
    receiver.behave(drip(before + final, b"", 0, 1))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error, said.retry_after) == (200, None, None)
    assert said.body == b"HTTP/1.1 103 Not a line"


def test_another_protocol_is_not_accepted(receiver: Receiver) -> None:
    receiver.behave(drip(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", b"", 0, 1))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (None, "the answer has no final status (101)")


def test_endless_informational_answers_end_at_64_kib(receiver: Receiver) -> None:
    receiver.behave(drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100, 0.0, 10_000))
    said = sender(30).send(receiver.url(), HEADERS, BODY)
    assert said.status is None
    assert said.error is not None and said.error.startswith("the connection broke, or the answer was not HTTP")
    assert said.duration < ENDLESS * 1000


def test_endless_informational_answers_end_in_time(receiver: Receiver) -> None:
    receiver.behave(drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n", 0.05, 1200))
    said = sender(0.5).send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.error) == (None, "no answer within 0.5 seconds")
    assert said.duration < ENDLESS * 1000


def test_a_body_cut_off_is_still_an_answer(receiver: Receiver) -> None:
    receiver.behave(drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc", b"", 0, 1))
    said = sender().send(receiver.url(), HEADERS, BODY)
    assert (said.status, said.body, said.error) == (200, b"abc", None)


def test_a_malformed_header_puts_no_url_in_the_log(receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    receiver.behave(drip(b"HTTP/1.1 200 OK\r\nA: b\r\nno colon here\r\nC: d\r\n\r\nbody", b"", 0, 1))
    assert sender().send(receiver.url("/a-path-that-only-we-know"), HEADERS, BODY).status == 200
    assert "only-we-know" not in caplog.text


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    said = sender().send(f"http://127.0.0.1:{port}/", HEADERS, BODY)
    assert (said.status, said.error) == (None, "no connection: refused or unreachable")


def test_without_the_setting_nothing_private_is_reached(receiver: Receiver) -> None:
    strict = SafeHttpSender(seconds=3)
    for url in (receiver.url(), receiver.url().replace("http://", "https://"), f"https://localhost:{receiver.port}/"):
        said = strict.send(url, HEADERS, BODY)
        assert said.status is None
        assert said.error is not None
        assert said.error.startswith("the URL is not allowed")
    assert receiver.connections == 0


class Names:
    """A resolver that a test controls: each lookup of a name uses up one answer; addresses resolve to themselves."""

    def __init__(self, *answers: list[str], seconds: float = 0.0) -> None:
        self.answers = list(answers)
        self.seconds = seconds
        self.asked: list[str] = []
        self._real = socket.getaddrinfo

    def __call__(self, host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            self.asked.append(host)
            time.sleep(self.seconds)
            found = self.answers.pop(0)
            if not found:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
            return [entry for address in found for entry in self._real(address, port, type=socket.SOCK_STREAM)]
        return self._real(host, port, *args, **kwargs)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Names]:
    def install(*answers: list[str], seconds: float = 0.0) -> Names:
        made = Names(*answers, seconds=seconds)
        monkeypatch.setattr(socket, "getaddrinfo", made)
        return made

    return install


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.0.0.1"], ["169.254.169.254"], ["8.8.8.8", "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["fd00:ec2::254"],
     ["2606:4700:4700::1111", "fe80::1"], ["0.0.0.1"], ["100.64.0.1"], ["64:ff9b::a9fe:a9fe"]],
)  # fmt: skip
def test_a_public_name_that_leads_inside_is_refused(
    receiver: Receiver, names: Callable[..., Names], monkeypatch: pytest.MonkeyPatch, addresses: list[str]
) -> None:
    names(addresses)
    connected: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _self, address: connected.append(address))
    said = SafeHttpSender(seconds=3).send(f"https://shop.example:{receiver.port}/", HEADERS, BODY)
    assert (said.status, said.error) == (None, "the host does not have a public address")
    assert connected == []


def test_the_checked_address_is_the_one_that_is_called(names: Callable[..., Names], monkeypatch: pytest.MonkeyPatch) -> None:
    # Rebinding: the second answer would lead inside. It is never asked for.
    resolver = names(["8.8.8.8"], ["127.0.0.1"])
    connected: list[Any] = []

    def connect(_self: socket.socket, address: Any) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket.socket, "connect", connect)
    said = SafeHttpSender(seconds=3).send("https://shop.example/hook", HEADERS, BODY)
    assert said.error == "no connection: refused or unreachable"
    assert connected == [("8.8.8.8", 443)]
    assert resolver.asked == ["shop.example"]


def test_the_next_address_has_its_turn(receiver: Receiver, names: Callable[..., Names]) -> None:
    names(["127.0.0.2", "127.0.0.1"])
    said = sender().send(f"http://shop.example:{receiver.port}/hook", HEADERS, BODY)
    assert said.status == 200
    assert receiver.received[0].headers["host"] == f"shop.example:{receiver.port}"


def test_a_name_that_does_not_resolve(names: Callable[..., Names]) -> None:
    names([])
    said = sender().send("https://shop.example/hook", HEADERS, BODY)
    assert (said.status, said.error) == (None, "the host's name does not resolve")


def test_a_resolver_that_takes_its_time_is_not_waited_for(names: Callable[..., Names]) -> None:
    names(["127.0.0.1"], seconds=30)
    start = time.monotonic()
    said = sender(0.3).send("https://shop.example/hook", HEADERS, BODY)
    assert (said.status, said.error) == (None, "the host's name does not resolve")
    assert time.monotonic() - start < ENDLESS


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"])
def test_a_name_that_leads_to_metadata_is_not_called_even_where_private_addresses_are_allowed(
    address: str, receiver: Receiver, names: Callable[..., Names]
) -> None:
    names(["127.0.0.1", address])
    said = sender().send(f"http://shop.example:{receiver.port}/hook", HEADERS, BODY)
    assert (said.status, said.error) == (None, "the host has a link-local or metadata address")
    assert receiver.received == []


def test_resolve_gives_each_address_once(names: Callable[..., Names]) -> None:
    names(["8.8.8.8", "8.8.4.4", "8.8.8.8"])
    assert resolve.addresses("shop.example", 443, seconds=1, allow_private=False) == ["8.8.8.8", "8.8.4.4"]


DAY = datetime.timedelta(days=1)


def self_signed(path: Path, *, ends: datetime.timedelta) -> Path:
    """A self-signed certificate of shop.example, with its key, valid for two days until `ends` from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "shop.example")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + ends - 2 * DAY)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop.example")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "shop.pem", ends=DAY)


@pytest.fixture
def tls_receiver(certificate: Path) -> Iterator[Receiver]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Receiver(tls=context) as running:
        yield running


def trusting(certificate: Path, seconds: float = 5.0) -> SafeHttpSender:
    return SafeHttpSender(allow_private=True, seconds=seconds, tls=ssl.create_default_context(cafile=str(certificate)))


def test_https_names_the_host_and_checks_its_certificate(
    tls_receiver: Receiver, certificate: Path, names: Callable[..., Names]
) -> None:
    names(["127.0.0.1"])
    said = trusting(certificate).send(f"https://shop.example:{tls_receiver.port}/hook", HEADERS, BODY)
    assert (said.status, said.body, said.error) == (200, b"thanks", None)
    assert tls_receiver.server_names == ["shop.example"]
    assert tls_receiver.received[0].headers["host"] == f"shop.example:{tls_receiver.port}"
    assert tls_receiver.received[0].body == BODY


def test_https_refuses_anothers_certificate(tls_receiver: Receiver, certificate: Path, names: Callable[..., Names]) -> None:
    names(["127.0.0.1"])
    said = trusting(certificate).send(f"https://other.example:{tls_receiver.port}/hook", HEADERS, BODY)
    assert said.status is None
    assert said.error is not None
    assert "not valid for 'other.example'" in said.error
    assert tls_receiver.received == []


def test_https_refuses_a_certificate_that_nobody_vouches_for(tls_receiver: Receiver, names: Callable[..., Names]) -> None:
    names(["127.0.0.1"])
    said = sender().send(f"https://shop.example:{tls_receiver.port}/hook", HEADERS, BODY)
    assert said.status is None
    assert said.error is not None
    assert said.error.startswith("TLS failed (self-signed certificate")
    assert tls_receiver.received == []


@pytest.mark.parametrize(("ends", "words"), [(-DAY / 24, "certificate has expired"), (3 * DAY, "certificate is not yet valid")])
def test_https_refuses_a_certificate_out_of_its_time(
    tmp_path: Path, names: Callable[..., Names], ends: datetime.timedelta, words: str
) -> None:
    names(["127.0.0.1"])
    path = self_signed(tmp_path / "shop.pem", ends=ends)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    with Receiver(tls=context) as running:
        said = trusting(path).send(f"https://shop.example:{running.port}/hook", HEADERS, BODY)
    assert (said.status, said.error) == (None, f"TLS failed ({words})")
    assert running.received == []


def test_https_by_an_address_refuses_a_certificate_of_a_name(tls_receiver: Receiver, certificate: Path) -> None:
    said = trusting(certificate).send(f"https://127.0.0.1:{tls_receiver.port}/hook", HEADERS, BODY)
    assert said.status is None
    assert said.error is not None and "not valid for '127.0.0.1'" in said.error
    assert tls_receiver.received == []


def test_https_to_a_receiver_that_reads_nothing_is_given_up(certificate: Path, names: Callable[..., Names]) -> None:
    names(["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    held = threading.Event()

    def shake_hands_and_stop(listener: socket.socket) -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True):
            held.wait(2 * ENDLESS)

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        threading.Thread(target=shake_hands_and_stop, args=(deaf,), daemon=True).start()
        start = time.monotonic()
        url = f"https://shop.example:{deaf.getsockname()[1]}/"
        said = trusting(certificate, 1.0).send(url, HEADERS, b"x" * 20_000_000)
        held.set()
    assert (said.status, said.error) == (None, "no answer within 1 seconds")
    assert time.monotonic() - start < ENDLESS


@pytest.mark.parametrize(("took", "left"), [(0.0, 4.0), (5.0, 1.0), (6.1, None)])
def test_connecting_and_tls_share_one_deadline(
    receiver: Receiver, names: Callable[..., Names], monkeypatch: pytest.MonkeyPatch, took: float, left: float | None
) -> None:
    """A connection that is accepted late leaves TLS what is left of six seconds, four at most; the clock is set forward."""
    names(["127.0.0.1"])
    real, connect, ahead = time.monotonic, socket.socket.connect, 0.0
    handshakes: list[float | None] = []

    def late(self: socket.socket, address: Any) -> None:
        nonlocal ahead
        connect(self, address)
        ahead += took

    def shake(self: ssl.SSLSocket, block: bool = False) -> None:
        handshakes.append(self.gettimeout())
        raise TimeoutError

    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead)
    monkeypatch.setattr(socket.socket, "connect", late)
    monkeypatch.setattr(ssl.SSLSocket, "do_handshake", shake)
    said = sender(6.0).send(f"https://shop.example:{receiver.port}/", HEADERS, BODY)
    assert (said.status, said.error) == (None, "no connection in time")
    if left is None:
        assert handshakes == [], "the deadline has passed"
    else:
        (given,) = handshakes
        assert given is not None and 0 < given <= left


def test_https_body_byte_by_byte_ends_in_time(tls_receiver: Receiver, certificate: Path, names: Callable[..., Names]) -> None:
    names(*[["127.0.0.1"]] * 3)
    tls_receiver.behave(drip(b"HTTP/1.1 200", b" ", 0.05, 1200))
    for seconds in (0.5, 2.0, 8.0):  # a busy machine may need the first for the handshake alone
        start = time.monotonic()
        said = trusting(certificate, seconds).send(f"https://shop.example:{tls_receiver.port}/hook", HEADERS, BODY)
        if said.error == f"no answer within {seconds:g} seconds":
            break
    assert said.status is None and said.error is not None and said.error.startswith("no answer within")
    assert time.monotonic() - start < ENDLESS


def test_a_tls_handshake_that_never_ends_ends_in_time(receiver: Receiver) -> None:
    # A server that accepts and says nothing: the handshake waits for it.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        said = sender(0.5).send(f"https://127.0.0.1:{silent.getsockname()[1]}/", HEADERS, BODY)
        assert (said.status, said.error) == (None, "no connection in time")
        assert time.monotonic() - start < ENDLESS
