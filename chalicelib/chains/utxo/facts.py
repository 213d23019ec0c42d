"""Fixed facts of each UTXO chain: its first block, and its nodes' relay policy. Pure.

Sources: chainparams.cpp and policy/policy.h of Bitcoin Core and Litecoin Core. Amounts in units, rates in units per 1,000 vbytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.encoding.public_keys import Chain, slug_of

GENESIS: dict[tuple[str, Chain], frozenset[str]] = {
    ("bitcoin", "main"): frozenset({"000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"}),
    # Testnet 3, testnet 4 and the public signet: their addresses are spelled alike.
    ("bitcoin", "testnet"): frozenset(
        {
            "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943",
            "00000000da84f2bafbbc53dee25a72ae507ff4914b867c565be350b0da8bf043",
            "00000008819873e925422c1ff0f99f7cc9bbb232af63a077a480a3633bee1ef6",
        }
    ),
    ("bitcoin", "regtest"): frozenset({"0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206"}),
    ("litecoin", "main"): frozenset({"12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2"}),
    ("litecoin", "testnet"): frozenset({"4966625a4b2851d9fdee139e56211a0d88575f59ed816ff5e6a63deb4e3e29a0"}),
    ("litecoin", "regtest"): frozenset({"530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9"}),
}
"""Hashes of block 0. A node whose first block is another is on another chain."""


@dataclass(frozen=True, slots=True)
class Policy:
    """`dust_rate`: an output that costs more than its worth to spend at this rate is not relayed. `relay_step`: by how much a
    replacement pays more (BIP-125, rule 4). `least` and `most` bound what an estimate may say, replacements may climb to MOST_RATE;
    `unknown` is the rate at the priority normal while the node can not estimate."""

    dust_rate: int
    relay_step: int
    least: int
    most: int
    unknown: int


# `most`: bitcoin's halving block of April 2024 cleared at about 1,800 units a vbyte for an hour; who waits pays far less. Blocks of
# litecoin have never been full for long. A node that asks for more is wrong or lies, and could burn a hot wallet (money rule 11).
_POLICIES = {
    "bitcoin": Policy(dust_rate=3_000, relay_step=1_000, least=1_000, most=1_000_000, unknown=20_000),
    "litecoin": Policy(dust_rate=30_000, relay_step=1_000, least=1_000, most=500_000, unknown=10_000),
}


def policy_of(network: str) -> Policy:
    """The policy of a network (slug or NetworkId). Raises LookupError for one that is no UTXO network."""
    return _POLICIES[slug_of(network)]
