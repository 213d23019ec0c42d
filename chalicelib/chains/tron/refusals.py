"""Classification of a node's answer to a transaction: taken, refused, or unknown. Pure.

Source: tronprotocol/protocol, api/api.proto (Return.response_code), and java-tron's Wallet.broadcastTransaction.
What is not recognised counts as "not known": trying again is safe, and giving a payment up wrongly is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from chalicelib.chains.tron.values import words

_REFUSED = frozenset(
    {
        "SIGERROR", "CONTRACT_VALIDATE_ERROR", "CONTRACT_EXE_ERROR", "BANDWITH_ERROR", "TAPOS_ERROR", "TOO_BIG_TRANSACTION_ERROR",
        "TRANSACTION_EXPIRATION_ERROR",
    }
)  # fmt: skip
_NO_FUNDS = re.compile(
    r"balance is not sufficient|not enough|insufficient|no OwnerAccount|must be less than (or equal to )?accountBalance"
    r"|account \[?\w*\]? does not exist|lack of",
    re.IGNORECASE,
)

_NO_CONTRACT = re.compile(r"no contract|smart contract is not exist|not a smart contract", re.IGNORECASE)

Outcome = Literal["taken", "refused", "no funds", "unknown"]


def outcome(answer: Mapping[str, Any]) -> tuple[Outcome, str]:
    """The class of an answer to wallet/broadcasttransaction, and the node's words."""
    code = answer.get("code")
    if (answer.get("result") is True and code in (None, "SUCCESS")) or code == "DUP_TRANSACTION_ERROR":
        return "taken", ""
    said = f"{words(code) if not isinstance(code, str) else code[:40]}: {words(answer.get('message'))}"
    if code == "BANDWITH_ERROR" or (code == "CONTRACT_VALIDATE_ERROR" and out_of_funds(said)):
        return "no funds", said
    return ("refused" if code in _REFUSED else "unknown"), said


def out_of_funds(said: str) -> bool:
    """Whether the node's words say that the sender has too little."""
    return _NO_FUNDS.search(said) is not None


def no_contract(said: str) -> bool:
    """Whether the node's words to a call say that there is no contract."""
    return _NO_CONTRACT.search(said) is not None
