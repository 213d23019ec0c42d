"""The request of docs/operating.md that registers a cold wallet, as it is written, by the app itself."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from chalicelib.domain.addresses.addresses import Wallet
from tests.support.edge import PREPARED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operating.md"
COLD = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"  # BIP-173's example


def test_a_cold_wallet_is_registered_as_the_page_says(aws: Any) -> None:
    edge = PREPARED.edge(aws)
    page = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = re.findall(r"^curl (\$API/addresses/service-wallets .*?)(?:   #.*)?$", page, re.MULTILINE)
    path, *options = shlex.split(line.replace("bc1q…", COLD).replace("$ADMIN", edge.new_key(level="admin")))
    pairs = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ", 1) for option, value in pairs if option == "-H")
    (body,) = (json.loads(value) for option, value in pairs if option == "-d")
    assert {option for option, _ in pairs} == {"-H", "-d"}
    answer = edge.call("POST", path.replace("$API", "/v1"), key=None, json=body, headers=headers)
    assert (answer.status, answer.json["address"], answer.json["custody"]) == (201, COLD, "none"), answer.body
    stored = edge.services.store.get(Wallet, network="test:bitcoin", role="cold")
    assert stored is not None and stored.address == COLD
