"""References to secrets in node URLs: their form, and where a secret may go."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.usecases.catalogue.node_secrets import (
    NodeSecret,
    decoded,
    encoded,
    filled,
    name_problem,
    names_in,
    origin,
    origin_of,
    value_problem,
)
from chalicelib.usecases.catalogue.node_urls import url_problem

PREFIX = "gateway-prod-node-"
NAME = "gateway-prod-node-alchemy"
IN_URL = f"{{secret:{NAME}}}"
BOUND = NodeSecret("s3cret/with@all?of#it", ("https://node.example",))


def fill(url: str, secret: NodeSecret = BOUND) -> str:
    return filled(url, {NAME: secret})


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (f"https://user:{IN_URL}@node.example", "https://user:s3cret%2Fwith%40all%3Fof%23it@node.example"),
        (f"https://{IN_URL}@node.example/", "https://s3cret%2Fwith%40all%3Fof%23it@node.example/"),
        (f"https://node.example/v2/{IN_URL}", "https://node.example/v2/s3cret%2Fwith%40all%3Fof%23it"),
        (f"https://NODE.example:443/x?key={IN_URL}", "https://NODE.example:443/x?key=s3cret%2Fwith%40all%3Fof%23it"),
    ],
)
def test_a_secret_is_put_in_its_place(url: str, sent: str) -> None:
    assert url_problem(url, ("http", "https"), credentials=True) is None
    assert names_in(url) == (NAME,)
    assert fill(url) == sent


@pytest.mark.parametrize(
    "url",
    [
        f"https://{IN_URL}.evil.example/",  # the secret would be asked for in DNS
        f"https://{IN_URL}/",
        f"{IN_URL}://node.example",
        f"https://node.example:{IN_URL}/",
        f"https://node.example/#{IN_URL}",
        f"https://node.example\\@evil.example/{IN_URL}",
        f"https://a@node.example@evil.example/{IN_URL}",
        f"https://evil.example\\.node.example/{IN_URL}",
        f"https://node.example%2f.evil.example/{IN_URL}",
        "https://node.example/{secret:}",
        "https://node.example/{secret:a/../b}",
        "https://node.example/{secret:a@evil.example}",
        "https://node.example/{secret:a",
        "https://node.example/{SECRET:a}",
        "https://node.example/{a}",
        "https://node.example/{secret:{secret:a}}",
    ],
)
def test_what_could_be_understood_otherwise_is_no_url(url: str) -> None:
    assert url_problem(url, ("http", "https"), credentials=True) is not None
    with pytest.raises(ValueError, match=r"must not be sent|where none may be"):
        fill(url)


def test_a_public_url_has_no_secret() -> None:
    assert url_problem(f"https://node.example/{IN_URL}", ("https",), credentials=False) == "must have no braces"


@pytest.mark.parametrize(
    "url",
    [
        f"https://evil.example/{IN_URL}",
        f"http://node.example/{IN_URL}",
        f"https://node.example:8443/{IN_URL}",
        f"https://node.example.evil.example/{IN_URL}",
        f"https://sub.node.example/{IN_URL}",
        f"https://node.example./{IN_URL}",
        f"https://node.example@evil.example/{IN_URL}",
        f"wss://node.example/{IN_URL}",
    ],
)
def test_a_secret_goes_to_its_origins_alone(url: str) -> None:
    with pytest.raises(ValueError, match=f"{NAME} must not be sent to") as raised:
        fill(url)
    assert BOUND.value not in str(raised.value)


@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60),
    st.sampled_from(["https://u:{}@node.example:8545/a", "https://{}@node.example:8545", "https://node.example:8545/{}/b?{}={}"]),
)
def test_no_value_changes_the_host(value: str, form: str) -> None:
    """Neither for what cuts the URL here, nor for what connects."""
    url = fill(form.replace("{}", IN_URL), NodeSecret(value, ("https://node.example:8545",)))
    parts = urlsplit(url)
    assert (parts.scheme, parts.hostname, parts.port, parts.fragment) == ("https", "node.example", 8545, "")
    seen = urllib3.util.parse_url(url)
    assert (seen.scheme, seen.host, seen.port, seen.fragment) == ("https", "node.example", 8545, None)
    if "u:" in form:
        assert unquote(parts.password or "") == value


@given(st.lists(st.sampled_from([*"ab.:@/\\?#%[]{}18", "https://", "node.example", IN_URL]), max_size=12).map("".join))
def test_both_parsers_find_the_origin_that_is_compared(middle: str) -> None:
    """Whatever has an origin here has it for urlsplit and for urllib3, too."""
    url = f"https://{middle}/{IN_URL}"
    try:
        place = origin_of(url)
        sent = fill(url, NodeSecret("value", (place,)))
        parts, seen = urlsplit(sent), urllib3.util.parse_url(sent)
        host = parts.hostname or ""
        found = {(f"[{host}]" if ":" in host else host, parts.port or 443), (seen.host, seen.port or 443)}
    except (ValueError, urllib3.exceptions.LocationParseError):
        return  # nobody connects
    assert {origin(f"{host}:{port}") for host, port in found} == {place}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Node.Example", "https://node.example"),
        ("node.example:443", "https://node.example"),
        ("node.example:8443", "https://node.example:8443"),
        ("http://10.0.0.7:8332", "http://10.0.0.7:8332"),
        ("http://10.0.0.7:80", "http://10.0.0.7"),
        ("[2001:db8::1]:8545", "https://[2001:db8::1]:8545"),
        ("wss://node.example", "wss://node.example"),
    ],
)
def test_origins_have_one_spelling(text: str, found: str) -> None:
    assert origin(text) == found
    assert origin_of(f"{found}/{IN_URL}") == found


@pytest.mark.parametrize(
    "text", ["", "*", "*.example", "https://", "node.example/path", "u@node.example", "node.example:0", "ftp://a"]
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no host|no port"):
        origin(text)


@pytest.mark.parametrize(
    "name",
    [
        "gateway-demo-node-a", "gateway-prod-webhooks", "prod/database", "gateway-prod-node-", "gateway-prod-node-A", "",
        "gateway-prod-node-a/b", "gateway-prod-node-a_b", "arn:aws:secretsmanager:eu-central-1:1:secret:gateway-prod-node-a",
        "gateway-prod-node-" + "a" * 101, "gateway-prod-node-a-", "gateway-prod-node-a\n",
    ],
)  # fmt: skip
def test_other_secrets_have_no_name_here(name: str) -> None:
    assert name_problem(name, PREFIX) is not None
    assert name_problem(NAME, PREFIX) is None


@pytest.mark.parametrize("text", ["", "hunter2", "[]", "{}", '{"value": 1, "origins": []}', '{"value": "hunter2", "origins": "x"}'])
def test_a_secret_of_another_form_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="node-secret writes") as raised:
        decoded(text)
    assert "hunter2" not in f"{raised.value!r} {raised.value.__context__ and raised.value.__suppress_context__}"
    assert decoded(encoded(BOUND)) == BOUND
    assert BOUND.value not in repr(BOUND)


@pytest.mark.parametrize("value", ["", "a b", "a\nb", "a\r\nX-Header: y", "ä", "a" * 1_001])
def test_values_that_no_header_takes_are_refused(value: str) -> None:
    assert value_problem(value) is not None
    with pytest.raises(ValueError, match="node-secret writes"):
        decoded(encoded(NodeSecret(value, ())))
