"""How a merchant's shop looks to its payers: what it may be, who may change it, and where it is shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest
import segno

from chalicelib.domain.merchants.shop import origin_of
from chalicelib.usecases.merchants import shop as shops
from chalicelib.web.framing import framed
from chalicelib.wiring import services
from tests.support.shop import Shop, open_shop
from tests.support.stack import Response, Stack

NOTHING = {"name": None, "color": None, "logo": None, "frameAncestors": []}


def logo(text: str = "a shop") -> str:
    return str(segno.make(text).png_data_uri(scale=2, dark="#0b6e4f")).removeprefix("data:image/png;base64,")


@pytest.fixture
def shop(stack: Stack) -> Iterator[Shop]:
    with open_shop(stack) as opened:
        yield opened


def put(shop: Shop, key: str | None = None, **looks: Any) -> Response:
    return shop.stack.call("PUT", "/v1/merchant/settings", key or shop.key, {"shop": looks})


def seen(shop: Shop) -> Any:
    return shop.get("/v1/merchant/settings")["data"]


def policy(answer: Response) -> dict[str, str]:
    return dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))


def test_looks_change_field_by_field(shop: Shop) -> None:
    assert seen(shop)["shop"] == NOTHING
    named = put(shop, name="Schöne Schuhe & Co", color="#0B6E4F")
    assert named.status == 200, named.body
    assert named.json["data"]["shop"] == {**NOTHING, "name": "Schöne Schuhe & Co", "color": "#0b6e4f"}
    sent = logo()
    made = put(shop, logo=sent, frameAncestors=["https://Shop.example/", "https://shop.example", "https://b.example:8443"])
    looks = made.json["data"]["shop"]
    assert looks["frameAncestors"] == ["https://shop.example", "https://b.example:8443"]
    assert looks["name"] == "Schöne Schuhe & Co"
    assert base64.b64decode(looks["logo"]).startswith(b"\x89PNG")
    assert seen(shop) == made.json["data"]
    assert (seen(shop)["revision"], seen(shop)["updated_at"]) == (0, None), "nothing that signers guard"
    assert put(shop, logo=looks["logo"]).json["data"]["shop"] == looks, "what was rewritten stays as it is"
    assert put(shop, logo=f"data:image/png;base64,{sent}").json["data"]["shop"] == looks
    assert put(shop, name=None, logo=None, frameAncestors=None).json["data"]["shop"] == {**NOTHING, "color": "#0b6e4f"}
    other = shop.stack.call("GET", "/v1/merchant/settings", shop.stack.keys["client_live"])
    assert other.json["data"]["shop"] == NOTHING


@pytest.mark.parametrize(
    ("looks", "field", "words"),
    [
        ({}, "shop", "must name something to change"),
        ({"nmae": "x"}, "shop.nmae", "is not known"),
        ({"name": ""}, "shop.name", "1 to 80"),
        ({"name": "x" * 81}, "shop.name", "1 to 80"),
        ({"name": " x"}, "shop.name", "printable"),
        ({"name": "Shop\u202egnp"}, "shop.name", "printable"),
        ({"name": "\u200d\u200c"}, "shop.name", "can be seen"),
        ({"name": "a\nb"}, "shop.name", "printable"),
        ({"color": "red"}, "shop.color", ""),
        ({"color": "#0b6e4f;}"}, "shop.color", ""),
        ({"color": "#0b6e4f\n"}, "shop.color", ""),
        ({"logo": 5}, "shop.logo", "as a string"),
        ({"logo": "not base64"}, "shop.logo", "must be a PNG in base64"),
        ({"logo": "x" * 100_000}, "shop.logo", "at most 64 KiB"),
        ({"logo": base64.b64encode(b"<svg xmlns='x'><script/></svg>").decode()}, "shop.logo", "it is an SVG"),
        ({"logo": base64.b64encode(b"\xff\xd8\xff\xe0").decode()}, "shop.logo", "it is a JPEG"),
        ({"frameAncestors": ["*"]}, "shop.frameAncestors.0", "must"),
        ({"frameAncestors": ["https://ok.example", "https://*.shop.example"]}, "shop.frameAncestors.1", "must"),
        ({"frameAncestors": ["https://shop.example/path"]}, "shop.frameAncestors.0", "no path"),
        ({"frameAncestors": ["https://a.example; script-src *"]}, "shop.frameAncestors.0", "characters"),
        ({"frameAncestors": ["https://user@shop.example"]}, "shop.frameAncestors.0", "user name"),
        ({"frameAncestors": ["'self'"]}, "shop.frameAncestors.0", "must begin with"),
        ({"frameAncestors": ["javascript:alert(1)"]}, "shop.frameAncestors.0", "must begin with"),
        ({"frameAncestors": [f"https://s{n}.example" for n in range(21)]}, "shop.frameAncestors", "at most 20"),
        ({"frameAncestors": [7]}, "shop.frameAncestors.0", "must be a string"),
    ],
)
def test_what_is_wrong_is_told_by_its_field(shop: Shop, looks: dict[str, Any], field: str, words: str) -> None:
    refused = put(shop, **looks)
    assert refused.status == 400, refused.body
    assert refused.json["error"]["code"] == "INVALID_PARAMETER"
    found = {problem["field"]: problem for problem in refused.json["error"]["details"]}
    assert words in str(found[field]["constraints"])
    assert seen(shop)["shop"] == NOTHING


def test_only_a_key_that_may_change_settings_changes_it(shop: Shop) -> None:
    assert put(shop, shop.stack.keys["read_only_test"], name="Mallory").status == 403
    assert put(shop, shop.stack.keys["other_merchant_test"], name="Mallory").status == 200
    assert seen(shop)["shop"] == NOTHING


def test_origins_outside_of_a_developers_machine_are_public_and_encrypted() -> None:
    assert origin_of("https://Shop.example:443/", allow_private=False) == "https://shop.example"
    assert origin_of("http://localhost:3000", allow_private=True) == "http://localhost:3000"
    assert origin_of("https://[2606:4700::1111]:8443", allow_private=False) == "https://[2606:4700::1111]:8443"
    for private in (
        "http://shop.example",
        "https://localhost",
        "https://127.0.0.1",
        "https://10.1.2.3:8443",
        "https://shop.internal",
    ):
        with pytest.raises(ValueError, match="must"):
            origin_of(private, allow_private=False)


def test_pages_of_payers_are_framed_by_listed_sites_and_claims_by_nobody(shop: Shop) -> None:
    invoice = shop.invoice()
    asked = {"name": "Hat", "amount": "1", "currency": "eth", "network": "ethereum"}
    link = shop.post("/v1/payment-links", asked).json
    paths = [f"/v1/pay/{invoice['id']}", f"/v1/link/{link['id']}"]
    assert {policy(shop.stack.call("GET", path))["frame-ancestors"] for path in paths} == {"'none'"}
    put(shop, frameAncestors=["https://shop.example", "https://b.example:8443"])
    for path in paths:
        answer = shop.stack.call("GET", path)
        assert policy(answer)["frame-ancestors"] == "https://shop.example https://b.example:8443"
        assert "x-frame-options" not in answer.headers
    for path in ("/v1/pay/inv_x", "/v1/link/plk_x", "/v1/claim/x"):
        assert policy(shop.stack.call("GET", path))["frame-ancestors"] == "'none'", path


def test_a_policy_takes_nothing_but_origins() -> None:
    headers = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "A": "b"}
    assert framed(headers, []) == headers
    for wrong in ("https://a.example; script-src *", "https://*.example", "'self'", "*", "https://a.example,https://b.example"):
        with pytest.raises(ValueError, match="not one source"):
            framed(headers, [wrong])
    with pytest.raises(ValueError, match="own policy"):
        framed({"Content-Security-Policy": "frame-ancestors *"}, ["https://a.example"])


def test_a_page_reads_the_shop_twice_a_minute(shop: Shop) -> None:
    put(shop, name="Shoes", logo=logo())
    time = [0.0]
    known = shops.Shops(services().store, lambda: time[0])
    invoice = shop.invoice()
    owner = services().checkouts.find(invoice["id"]).invoice.tenant
    first = known.shown(owner)
    assert first["name"] == "Shoes"
    assert re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", first["logo"])
    put(shop, name="Boots", logo=None)
    assert known.shown(owner) == first
    time[0] = shops.FRESH_SECONDS + 1
    assert known.shown(owner) == {"name": "Boots", "color": None, "logo": None}
