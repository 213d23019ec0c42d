"""What arrived on many deposit addresses is moved by one transaction, each coin signed for by its own key from the seed."""

from __future__ import annotations

import os

import boto3
import pytest

from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.custody.derive import XpubDeriver
from chalicelib.custody.derived import derived_signer
from chalicelib.custody.records import EncryptedSeed
from chalicelib.custody.seed import SEED_ID
from chalicelib.domain.addresses.addresses import Xpub
from chalicelib.domain.ids import Realm, network_id
from chalicelib.usecases.ports.coins import Unspent
from chalicelib.wiring import services
from infra.local.nodes import Litecoin
from tests.nodes.utxo import network_of, reader_of, stranger
from tests.support.stack import Stack

MANY = 40 if os.environ.get("SWEEP") == "full" else 8
"""Deposits: each takes half a second to derive, pay, sign and check."""

pytestmark = pytest.mark.nodes


def xpub_of(realm: Realm, pool: str) -> str | None:
    found = services().store.get(Xpub, realm=realm, pool=pool)
    return None if found is None else found.xpub


def test_many_deposits_become_one_coin(stack: Stack, litecoin: Litecoin) -> None:
    network = network_id("live", "litecoin")
    deriver = XpubDeriver(xpub_of, {network: "regtest"})
    paths = dict(deriver.derive("live", network, index) for index in range(MANY))
    height = reader_of(litecoin).tip()
    for number, address in enumerate(paths):
        litecoin.send(address, 1_000_000 + number)
    litecoin.mine()
    coins = [
        Unspent(f"{t.txid}:{t.position[4:]}", t.recipient, t.amount, block.number)
        for block in reader_of(litecoin).blocks(height + 1, height + 1, ())
        for t in block.transfers
        if t.recipient in paths
    ]
    assert len(coins) == MANY
    payer, hot = UtxoPayer(network_of(litecoin), litecoin.rpc, "regtest"), stranger(litecoin)
    plan = payer.consolidate(hot, coins, payer.fee_rate("normal"))
    owners = {coin.outpoint: paths[coin.address] for coin in coins}
    seed = services().store.get(EncryptedSeed, id=SEED_ID)
    assert seed is not None
    with derived_signer(boto3.client("kms"), services().settings, seed) as signer:
        digests = payer.digests(plan.unsigned)
        signatures = [signer.sign(owners[name], digest) for name, digest in zip(plan.inputs, digests, strict=True)]
    with pytest.raises(ValueError, match="shut"):
        signer.sign(next(iter(paths.values())), digests[0])
    signed = payer.assemble(plan.unsigned, signatures)
    payer.broadcast(signed.raw)
    litecoin.mine()
    assert plan.change is not None
    (moved,) = payer.unspent([f"{signed.txid}:0"])
    assert moved is not None and moved.amount == sum(coin.amount for coin in coins) - plan.fee == plan.change.amount
    assert payer.unspent([coin.outpoint for coin in coins]) == [None] * MANY
