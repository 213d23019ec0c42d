"""Payments that bitcoin's and litecoin's nodes take: signed outside, replaced, repeated, refused; many coins moved into one."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from coincurve import PrivateKey

from chalicelib.chains.utxo import psbt
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.chains.utxo.scripts import address_of
from chalicelib.custody.signatures import finish, parse_der
from chalicelib.encoding.public_keys import hash160
from chalicelib.usecases.ports.coins import CoinPlan, Output, Unspent
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.signing import Signature
from infra.local.nodes import Litecoin, UtxoNode
from tests.nodes.utxo import mempool_of, network_of, reader_of, seen, stranger

pytestmark = pytest.mark.nodes

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@dataclass(frozen=True)
class Key:
    """A key that never leaves its device, which signs as KMS does: DER, s in either half."""

    node: UtxoNode
    legacy: bool = False
    secret: PrivateKey = field(default_factory=PrivateKey)

    @property
    def address(self) -> str:
        hash_ = hash160(self.secret.public_key.format())
        script = b"\x76\xa9\x14" + hash_ + b"\x88\xac" if self.legacy else b"\0\x14" + hash_
        return address_of(self.node.slug, script, "regtest")

    def sign(self, digest: bytes) -> Signature:
        r, s = parse_der(self.secret.sign(digest, hasher=None))
        s = ORDER - s if digest[0] & 1 else s
        return finish(r, s, digest, self.secret.public_key.format(compressed=False)[1:])


def payer_of(node: UtxoNode) -> UtxoPayer:
    return UtxoPayer(network_of(node), node.rpc, "regtest")


def funded(node: UtxoNode, keys: Sequence[Key], amounts: Sequence[int]) -> list[Unspent]:
    """The coins of these keys, after one block."""
    height = reader_of(node).tip()
    for key, amount in zip(keys, amounts, strict=True):
        node.send(key.address, amount)
    node.mine()
    reader, addresses = reader_of(node), {key.address for key in keys}
    return [
        Unspent(f"{t.txid}:{t.position[4:]}", t.recipient, t.amount, block.number)
        for block in reader.blocks(height + 1, reader.tip(), ())
        for t in block.transfers
        if t.recipient in addresses
    ]


def signed(payer: UtxoPayer, plan: CoinPlan, coins: Sequence[Unspent], keys: Sequence[Key]) -> tuple[str, str]:
    """Raw bytes and id, each input signed by the key of its address."""
    by_address = {key.address: key for key in keys}
    owner = {coin.outpoint: by_address[coin.address] for coin in coins}
    digests = payer.digests(plan.unsigned)
    done = payer.assemble(plan.unsigned, [owner[name].sign(d) for name, d in zip(plan.inputs, digests, strict=True)])
    return done.raw, done.txid


def test_a_payment_with_change_arrives_once_however_often_it_is_sent(utxo_node: UtxoNode) -> None:
    wallet, payer = Key(utxo_node), payer_of(utxo_node)
    coins = funded(utxo_node, [wallet] * 3, [10**8, 2 * 10**8, 10**6])
    payees = [Output(stranger(utxo_node), amount) for amount in (5 * 10**7, 12 * 10**7, 1_000_000)]
    rate = payer.fee_rate("normal")
    plan = payer.plan(wallet.address, coins, payees, rate)
    raw, txid = signed(payer, plan, coins, [wallet])
    height = reader_of(utxo_node).tip()
    for _ in range(3):
        payer.broadcast(raw)
    assert txid in mempool_of(utxo_node).waiting()
    told = utxo_node.rpc.call("getrawtransaction", [txid, True])
    assert plan.vsize - len(plan.inputs) <= told["vsize"] <= plan.vsize
    assert plan.fee * 1_000 >= rate * told["vsize"]
    assert payer.unspent(plan.inputs) == [None] * len(plan.inputs)
    assert plan.change is not None
    change = payer.unspent([f"{txid}:{len(payees)}"])
    assert change == [Unspent(f"{txid}:{len(payees)}", wallet.address, plan.change.amount, 0)]
    utxo_node.mine()
    payer.broadcast(raw)
    for payee in payees:
        assert [(t.txid, t.amount) for t in seen(utxo_node, payee.address, height)] == [(txid, payee.amount)]
    (mined,) = payer.unspent([f"{txid}:{len(payees)}"])
    assert mined == Unspent(f"{txid}:{len(payees)}", wallet.address, plan.change.amount, height + 1)
    # And the change pays the next time.
    again = payer.plan(wallet.address, [mined], [Output(stranger(utxo_node), 10**7)], rate)
    payer.broadcast(signed(payer, again, [mined], [wallet])[0])
    utxo_node.mine()


def test_sixty_deposits_become_one_coin(utxo_node: UtxoNode) -> None:
    keys = [Key(utxo_node, legacy=n % 4 == 0) for n in range(60)]
    wallet, payer = Key(utxo_node), payer_of(utxo_node)
    coins = funded(utxo_node, keys, [100_000 + n for n in range(60)])
    assert len(coins) == 60
    plan = payer.consolidate(wallet.address, coins, 2_000)
    assert set(plan.inputs) == {coin.outpoint for coin in coins}
    raw, txid = signed(payer, plan, coins, keys)
    payer.broadcast(raw)
    height = reader_of(utxo_node).tip()
    utxo_node.mine()
    arrived = seen(utxo_node, wallet.address, height)
    assert [(t.txid, t.amount) for t in arrived] == [(txid, sum(coin.amount for coin in coins) - plan.fee)]


def test_what_is_spent_already_is_refused(utxo_node: UtxoNode) -> None:
    wallet, payer = Key(utxo_node), payer_of(utxo_node)
    coins = funded(utxo_node, [wallet], [10**8])
    first = payer.plan(wallet.address, coins, [Output(stranger(utxo_node), 10**7)], 2_000)
    second = payer.plan(wallet.address, coins, [Output(stranger(utxo_node), 10**7)], 2_000)
    payer.broadcast(signed(payer, first, coins, [wallet])[0])
    raw, txid = signed(payer, second, coins, [wallet])
    with pytest.raises(Refused):
        payer.broadcast(raw)
    utxo_node.mine()
    with pytest.raises(Refused):
        payer.broadcast(raw)
    assert reader_of(utxo_node).receipt(txid) is None


def test_nodes_refuse_what_was_tampered_with(utxo_node: UtxoNode) -> None:
    wallet, payer = Key(utxo_node), payer_of(utxo_node)
    coins = funded(utxo_node, [wallet], [10**8])
    plan = payer.plan(wallet.address, coins, [Output(stranger(utxo_node), 10**7)], 2_000)
    raw, _ = signed(payer, plan, coins, [wallet])
    payee = psbt.decode(plan.unsigned).outputs[0].script.hex()
    with pytest.raises(Refused):
        payer.broadcast(raw.replace(payee, payee[:-1] + ("0" if payee[-1] != "0" else "1")))
    # Half a transaction is none, and goes to no node.
    with pytest.raises(ValueError, match="cut short"):
        payer.broadcast(raw[: len(raw) // 4 * 2])
    assert payer.unspent(plan.inputs) == coins


def test_a_stuck_payment_is_replaced_and_only_one_is_mined(litecoin: Litecoin) -> None:
    wallet, payer = Key(litecoin), payer_of(litecoin)
    coins = sorted(funded(litecoin, [wallet] * 2, [10**7, 10**8]), key=lambda coin: coin.amount)
    payee = Output(stranger(litecoin), 9_990_000)
    old = payer.plan(wallet.address, coins[:1], [payee], 1_000)
    raw, txid = signed(payer, old, coins, [wallet])
    payer.broadcast(raw)
    height = reader_of(litecoin).tip()
    attempts = [(old, txid)]
    # The same rate as before: what nodes ask of a replacement makes it enough. The second takes another coin.
    for rate in (1_000, 100_000, 100_000):
        last, _ = attempts[-1]
        new = payer.replace(last.unsigned, wallet.address, coins, rate)
        assert new.outputs == (payee,)
        assert set(last.inputs) <= set(new.inputs)
        raw, txid = signed(payer, new, coins, [wallet])
        payer.broadcast(raw)
        assert litecoin.rpc.call("getrawtransaction", [txid, True]).get("blockhash") is None
        attempts.append((new, txid))
        waiting = mempool_of(litecoin).waiting()
        assert [t in waiting for _, t in attempts] == [False] * (len(attempts) - 1) + [True]
    assert len(attempts[-1][0].inputs) == 2
    litecoin.mine()
    assert [(t.txid, t.amount) for t in seen(litecoin, payee.address, height)] == [(attempts[-1][1], payee.amount)]
    # The one that was replaced can not come back.
    with pytest.raises(Refused):
        payer.broadcast(signed(payer, old, coins, [wallet])[0])


def test_a_replacement_that_pays_too_little_more_is_refused_by_the_node_too(litecoin: Litecoin) -> None:
    wallet, payer = Key(litecoin), payer_of(litecoin)
    coins = funded(litecoin, [wallet], [10**8])
    payee = Output(stranger(litecoin), 10**7)
    plan = payer.plan(wallet.address, coins, [payee], 2_000)
    payer.broadcast(signed(payer, plan, coins, [wallet])[0])
    little = payer.plan(wallet.address, coins, [payee], 2_900)
    with pytest.raises(Refused, match="insufficient fee"):
        payer.broadcast(signed(payer, little, coins, [wallet])[0])
    least = payer.replace(plan.unsigned, wallet.address, [], 1)
    payer.broadcast(signed(payer, least, coins, [wallet])[0])
    assert least.fee - plan.fee <= -(-1_030 * least.vsize // 1_000)
    litecoin.mine()


def test_dust_and_fees_are_what_the_node_thinks_of_them(litecoin: Litecoin) -> None:
    wallet, payer = Key(litecoin), payer_of(litecoin)
    coins = funded(litecoin, [wallet], [10**8])
    for kind, dust in (("bech32", 2_940), ("legacy", 5_460), ("p2sh-segwit", 5_400)):
        address = litecoin.rpc.call("getnewaddress", ["", kind])
        plan = payer.plan(wallet.address, coins, [Output(address, dust)], 1_000)
        raw, _ = signed(payer, plan, coins, [wallet])
        (verdict,) = litecoin.rpc.call("testmempoolaccept", [[raw]])
        assert verdict["allowed"], verdict
        with pytest.raises(Refused, match="dust"):
            payer.plan(wallet.address, coins, [Output(address, dust - 1)], 1_000)
    assert payer.fee_rate("urgent") == 2 * payer.fee_rate("normal")
    with pytest.raises(InsufficientFunds):
        payer.plan(wallet.address, coins, [Output(wallet.address, 10**8)], 1_000)


def test_core_reads_our_unsigned_transactions(litecoin: Litecoin) -> None:
    """BIP-174 as a second implementation has it: the same inputs, amounts, outputs, fee and size."""
    keys = [Key(litecoin), Key(litecoin, legacy=True)]
    payer = payer_of(litecoin)
    coins = funded(litecoin, keys, [10**7, 10**7])
    plan = payer.consolidate(keys[0].address, coins, 3_000)
    text = base64.b64encode(bytes.fromhex(plan.unsigned)).decode()
    told = litecoin.rpc.call("decodepsbt", [text])
    assert tuple(f"{i['txid']}:{i['vout']}" for i in told["tx"]["vin"]) == plan.inputs
    assert {i["sequence"] for i in told["tx"]["vin"]} == {0xFFFFFFFD}
    assert (round(told["fee"] * 10**8), told["tx"]["version"], told["tx"]["locktime"]) == (plan.fee, 2, 0)
    assert sorted(next(name for name in i if name.endswith("witness_utxo")) for i in told["inputs"]) == [
        "non_witness_utxo",
        "witness_utxo",
    ]
    analysed = litecoin.rpc.call("analyzepsbt", [text])
    assert round(analysed["fee"] * 10**8) == plan.fee
    assert all(i["has_utxo"] for i in analysed["inputs"])


def test_what_a_node_can_not_answer_is_not_known(utxo_node: UtxoNode) -> None:
    payer = payer_of(utxo_node)
    assert payer.unspent([]) == []
    assert payer.unspent(["ab" * 32 + ":0"]) == [None]
    legacy = Key(utxo_node, legacy=True)
    unknown = Unspent("ab" * 32 + ":0", legacy.address, 10**8, 5)
    with pytest.raises(Unavailable):
        payer.plan(legacy.address, [unknown], [Output(stranger(utxo_node), 10**6)], 2_000)
    with pytest.raises(Unavailable, match="another chain"):
        UtxoPayer(network_of(utxo_node), utxo_node.rpc).fee_rate("normal")
