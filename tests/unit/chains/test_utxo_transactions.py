"""UTXO transactions against BIP-143's examples and a second implementation (bitcoinlib); the strict reading of what is signed."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from coincurve import PrivateKey

from chalicelib.chains.rpc import JsonRpc
from chalicelib.chains.utxo import psbt
from chalicelib.chains.utxo.payer import UtxoPayer
from chalicelib.chains.utxo.scripts import address_of, dust_of, key_hash_of, script_of
from chalicelib.chains.utxo.transactions import (
    Input,
    PaidTo,
    Unsigned,
    der_of,
    double_sha256,
    outpoint_of,
    transaction_id,
    unlock,
    without_witnesses,
)
from chalicelib.custody.signatures import parse_der, sign_with
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.encoding.public_keys import hash160
from chalicelib.usecases.ports.coins import Output, ProvedCoins, Unspent

CASES = 2_000 if os.environ.get("SWEEP") == "full" else 400


def payer(slug: str = "bitcoin") -> UtxoPayer:
    network = next(network for network in default_networks("live") if network.slug == slug)
    return UtxoPayer(network, JsonRpc("http://127.0.0.1:1"))


def segwit(key: PrivateKey) -> bytes:
    return b"\0\x14" + hash160(key.public_key.format())


def legacy(key: PrivateKey) -> bytes:
    return b"\x76\xa9\x14" + hash160(key.public_key.format()) + b"\x88\xac"


def previous_of(paid: PaidTo, source: random.Random) -> bytes:
    """A transaction whose output 0 is `paid`."""
    return Unsigned((Input(source.randbytes(36), 1, b""),), (paid,)).skeleton()


def spending(key: PrivateKey, amount: int, source: random.Random, kind: str = "p2wpkh") -> Input:
    if kind == "p2pkh":
        previous = previous_of(PaidTo(amount, legacy(key)), source)
        return Input(double_sha256(previous) + bytes(4), amount, legacy(key), previous=previous)
    outpoint = source.randbytes(32) + source.randrange(2**16).to_bytes(4, "little")
    if kind == "p2wpkh":
        return Input(outpoint, amount, segwit(key))
    return Input(outpoint, amount, b"\xa9\x14" + hash160(segwit(key)) + b"\x87", redeem=segwit(key))


def test_native_segwit_example_of_bip143() -> None:
    """https://github.com/bitcoin/bips/blob/master/bip-0143.mediawiki, "Native P2WPKH": its second input."""
    bare_key = bytes.fromhex("2103c9f4836b9a4f77fc0d81f7bcb01b7f1b35916864b9476c241ce9fc198bd25432ac")
    first = bytes.fromhex("fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000")
    second = bytes.fromhex("ef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a01000000")
    unsigned = Unsigned(
        (
            Input(first, 625_000_000, bare_key, sequence=b"\xee\xff\xff\xff"),
            Input(second, 600_000_000, bytes.fromhex("00141d0f172a0ecb48aee1be1f2687d2963ae33f71a1"), sequence=b"\xff" * 4),
        ),
        (
            PaidTo(112_340_000, bytes.fromhex("76a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac")),
            PaidTo(223_450_000, bytes.fromhex("76a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac")),
        ),
        version=b"\x01\0\0\0",
        lock_time=b"\x11\0\0\0",
    )
    assert unsigned.skeleton().hex() == (
        "0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffffef51e1b804cc89d182d279655c3aa89e81"
        "5b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d"
        "000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac11000000"
    )
    digest = unsigned.digest(1, unsigned.shared(), *key_hash_of(unsigned.inputs[1].script))
    assert digest.hex() == "c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670"
    key = PrivateKey(bytes.fromhex("619c335025c7f4012e556c2a58b2506e30b8511b53ade95ea316fd8c3286feb9"))
    der, public = unlock(key_hash_of(unsigned.inputs[1].script)[1], digest, sign_with(key, digest))
    assert der.hex() == (
        "304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561406f90300e8f3358f51928d43c212a8ca"
        "ed02de67eebee"
    )
    assert public.hex() == "025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357"
    with pytest.raises(ValueError, match="not a plain output of one key"):
        _ = unsigned.digests


def test_nested_segwit_example_of_bip143() -> None:
    """The same document, "P2SH-P2WPKH"."""
    unsigned = Unsigned(
        (
            Input(
                bytes.fromhex("db6b1b20aa0fd7b23880be2ecbd4a98130974cf4748fb66092ac4d3ceb1a547701000000"),
                1_000_000_000,
                bytes.fromhex("a9144733f37cf4db86fbc2efed2500b4f4e49f31202387"),
                redeem=bytes.fromhex("001479091972186c449eb1ded22b78e40d009bdf0089"),
                sequence=b"\xfe\xff\xff\xff",
            ),
        ),
        (
            PaidTo(199_996_600, bytes.fromhex("76a914a457b684d7f0d539a46a45bbc043f35b59d0d96388ac")),
            PaidTo(800_000_000, bytes.fromhex("76a914fd270b1ee6abcaea97fea7ad0402e8bd8ad6d77c88ac")),
        ),
        version=b"\x01\0\0\0",
        lock_time=b"\x92\x04\0\0",
    )
    (digest,) = unsigned.digests
    assert digest.hex() == "64f3b0f4dd2bb3aa1ce8566d220cc74dda9df97d8490cc81d89d735c92e59fb6"
    key = PrivateKey(bytes.fromhex("eb696a065ef48a2192da5b28b694f87544b30fae8327c4510137a922f32c6dcf"))
    signed = unsigned.signed([unlock(unsigned.keys[0][1], digest, sign_with(key, digest))])
    assert signed.raw == (
        "01000000000101db6b1b20aa0fd7b23880be2ecbd4a98130974cf4748fb66092ac4d3ceb1a5477010000001716001479091972186c449eb1ded22b78e40d009b"
        "df0089feffffff02b8b4eb0b000000001976a914a457b684d7f0d539a46a45bbc043f35b59d0d96388ac0008af2f000000001976a914fd270b1ee6abcaea97fe"
        "a7ad0402e8bd8ad6d77c88ac02473044022047ac8e878352d3ebbde1c94ce3a10d057c24175747116f8288e5d794d12d482f0220217f36a485cae903c713331d"
        "877c1f64677e3622ad4010726870540656fe9dcb012103ad1d8e89212f0b92c74d23bb710c00662ad1470198ac48c43f7d6f93a2a2687392040000"
    )
    assert transaction_id(bytes.fromhex(signed.raw)) == signed.txid


@pytest.fixture
def bitcoinlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BCL_DATA_DIR", str(tmp_path))
    from bitcoinlib import keys, transactions

    return keys, transactions


def test_digests_bytes_and_ids_are_bitcoinlibs(bitcoinlib: Any) -> None:
    keys, transactions = bitcoinlib
    source = random.Random("utxo transactions")
    secrets = [PrivateKey(source.randbytes(32)) for _ in range(8)]
    publics = [keys.Key(secret.public_key.format().hex(), network="bitcoin") for secret in secrets]
    witness_types = {"p2wpkh": "segwit", "p2sh-p2wpkh": "p2sh-segwit", "p2pkh": "legacy"}
    for _ in range(CASES):
        kinds = [source.choice(("p2wpkh", "p2wpkh", "p2sh-p2wpkh", "p2pkh")) for _ in range(source.randint(1, 3))]
        owners = [source.randrange(len(secrets)) for _ in kinds]
        inputs = [
            spending(secrets[owner], source.randrange(10**4, 10**12), source, kind)
            for owner, kind in zip(owners, kinds, strict=True)
        ]
        total = sum(spent.amount for spent in inputs)
        scripts = [
            source.choice(
                (
                    b"\0\x14" + source.randbytes(20),
                    b"\0\x20" + source.randbytes(32),
                    b"\x51\x20" + source.randbytes(32),
                    b"\xa9\x14" + source.randbytes(20) + b"\x87",
                    b"\x76\xa9\x14" + source.randbytes(20) + b"\x88\xac",
                )
            )
            for _ in range(source.randint(1, 4))
        ]
        unsigned = Unsigned(tuple(inputs), tuple(PaidTo(total // len(scripts) - source.randrange(9), s) for s in scripts))
        theirs = transactions.Transaction(version=2, network="bitcoin", witness_type="segwit")
        for spent, owner, kind in zip(inputs, owners, kinds, strict=True):
            txid, index = spent.name.split(":")
            theirs.add_input(
                txid, int(index), keys=publics[owner], value=spent.amount, sequence=0xFFFFFFFD, witness_type=witness_types[kind]
            )
        for output in unsigned.outputs:
            theirs.add_output(output.amount, lock_script=output.script)
        digests = unsigned.digests
        assert digests == [theirs.signature_hash(n, 1, theirs.inputs[n].witness_type) for n in range(len(inputs))]
        signatures = [sign_with(secrets[owner], digest) for owner, digest in zip(owners, digests, strict=True)]
        signed = unsigned.signed([unlock(*parts) for parts in zip((h for _, h in unsigned.keys), digests, signatures, strict=True)])
        for spent, digest, signature, owner in zip(theirs.inputs, digests, signatures, owners, strict=True):
            spent.signatures = [keys.Signature(signature.r, signature.s, message=digest, public_key=publics[owner])]
            spent.update_scripts(1)
        if "p2wpkh" in kinds or "p2sh-p2wpkh" in kinds:
            assert signed.raw == theirs.raw_hex()
        parsed = transactions.Transaction.parse_hex(signed.raw, network="bitcoin", strict=True)
        assert parsed.txid == signed.txid == transaction_id(bytes.fromhex(signed.raw))
        assert [output.address for output in parsed.outputs] == [address_of("bitcoin", script, "main") for script in scripts]
        assert [script_of("bitcoin", output.address, "main") for output in parsed.outputs] == scripts
        # The bound on the size holds, and is close.
        raw = bytes.fromhex(signed.raw)
        weight = 3 * len(without_witnesses(raw)) + len(raw)
        slack = sum({"p2wpkh": 4, "p2sh-p2wpkh": 4, "p2pkh": 17}[kind] for kind in kinds) + 2
        assert weight <= unsigned.weight <= weight + slack


def test_what_is_signed_is_explained_and_checked() -> None:
    source = random.Random("explained")
    key, other = PrivateKey(source.randbytes(32)), PrivateKey(source.randbytes(32))
    ours = payer("litecoin")
    inputs = tuple(spending(key, 10**6, source, kind) for kind in ("p2wpkh", "p2pkh", "p2sh-p2wpkh"))
    unsigned = Unsigned(inputs, (PaidTo(10**6, segwit(other)), PaidTo(10**6, legacy(other)), PaidTo(990_000, segwit(key))))
    text = psbt.encode(unsigned)
    assert psbt.decode(text) == unsigned
    plan = ours.explain(text)
    assert plan.inputs == tuple(spent.name for spent in inputs)
    assert plan.outputs == (
        Output(address_of("litecoin", segwit(other), "main"), 10**6),
        Output(address_of("litecoin", legacy(other), "main"), 10**6),
        Output(address_of("litecoin", segwit(key), "main"), 990_000),
    )
    assert (plan.fee, plan.change, plan.unsigned) == (10_000, None, text)
    digests = ours.digests(text)
    assert digests == unsigned.digests
    signatures = [sign_with(key, digest) for digest in digests]
    signed = ours.assemble(text, signatures)
    assert signed.txid == transaction_id(bytes.fromhex(signed.raw))
    assert len(bytes.fromhex(signed.raw)) >= plan.vsize
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    wrong = [
        signatures[:2],
        [signatures[1], signatures[0], signatures[2]],
        [sign_with(other, digest) for digest in digests],
        [replace(signatures[0], parity=1 - signatures[0].parity), *signatures[1:]],
        [replace(signatures[0], s=order - signatures[0].s, parity=1 - signatures[0].parity), *signatures[1:]],
        [replace(signatures[0], r=0), *signatures[1:]],
        [replace(signatures[0], parity=2), *signatures[1:]],
    ]
    for bad in wrong:
        with pytest.raises(ValueError, match=r"signature"):
            ours.assemble(text, bad)


def test_nothing_unusual_is_signed() -> None:
    source = random.Random("unusual")
    key = PrivateKey(source.randbytes(32))
    ours, first = payer(), spending(key, 10**6, source)
    old = spending(key, 10**6, source, "p2pkh")
    plain = Unsigned((first,), (PaidTo(990_000, segwit(key)),))
    text = psbt.encode(plain)
    assert ours.explain(text).fee == 10_000

    def bytes_of(unsigned: Unsigned) -> str:
        return psbt._bytes(unsigned).hex()

    bad = {
        "a lock time": bytes_of(replace(plain, lock_time=b"\x01\0\0\0")),
        "version 1": bytes_of(replace(plain, version=b"\x01\0\0\0")),
        "final sequence": bytes_of(replace(plain, inputs=(replace(first, sequence=b"\xff" * 4),))),
        "no inputs": bytes_of(replace(plain, inputs=())),
        "no outputs": bytes_of(replace(plain, outputs=())),
        "twice the same input": bytes_of(Unsigned((first, first), (PaidTo(1_990_000, segwit(key)),))),
        "nothing for the miners": bytes_of(replace(plain, outputs=(PaidTo(10**6, segwit(key)),))),
        "more than there is": bytes_of(replace(plain, outputs=(PaidTo(10**6 + 1, segwit(key)),))),
        "everything for the miners": bytes_of(replace(plain, outputs=(PaidTo(1, segwit(key)),))),
        "an output of nothing": bytes_of(replace(plain, outputs=(*plain.outputs, PaidTo(0, segwit(key))))),
        "an output without an address": bytes_of(replace(plain, outputs=(PaidTo(990_000, b"\x6a\x01\x01"),))),
        "a witness version to come": bytes_of(replace(plain, outputs=(PaidTo(990_000, b"\x52\x20" + bytes(32)),))),
        "an input of many keys": bytes_of(replace(plain, inputs=(replace(first, script=b"\0\x20" + bytes(32)),))),
        "an input of taproot": bytes_of(replace(plain, inputs=(replace(first, script=b"\x51\x20" + bytes(32)),))),
        "a script behind the wrong hash": bytes_of(
            replace(plain, inputs=(replace(first, script=b"\xa9\x14" + bytes(20) + b"\x87", redeem=segwit(key)),))
        ),
        "a legacy input without its transaction": bytes_of(replace(plain, inputs=(replace(old, previous=b""),))),
        "a legacy input with another transaction": bytes_of(
            replace(plain, inputs=(replace(old, previous=previous_of(PaidTo(10**6, legacy(key)), source)),))
        ),
        "a segwit input with a transaction": bytes_of(
            replace(plain, inputs=(replace(first, previous=previous_of(PaidTo(10**6, segwit(key)), source)),))
        ),
        "capitals": text.upper(),
        "blanks": text + " ",
        "something behind": text + "00",
        "0x": "0x" + text,
        "nothing": "",
        # PSBT_IN_SIGHASH_TYPE: SIGHASH_NONE, before the end of the only input's fields and the only output's.
        "another hash type": text[:-4] + "0103" + "0402000000" + "0000",
        "a field that we do not use": text[:-4] + "01fc" + "00" + "0000",
        "a field of the output": text[:-2] + "0100" + "00" + "00",
    }
    for what, unsigned in bad.items():
        try:
            ours.explain(unsigned)
        except ValueError as error:
            assert str(error), what
        else:
            pytest.fail(what)
    # A wrong amount of a legacy input would go to the miners: its transaction says how much it is.
    amount = old.amount
    lying = psbt.encode(Unsigned((old,), (PaidTo(amount - 5_000, segwit(key)),)))
    assert ours.explain(lying).fee == 5_000
    with pytest.raises(ValueError, match="amount or script"):
        psbt.encode(Unsigned((replace(old, amount=amount - 1),), (PaidTo(amount - 5_000, segwit(key)),)))


def test_no_changed_byte_goes_unseen() -> None:
    source = random.Random("changed bytes")
    key = PrivateKey(source.randbytes(32))
    ours = payer()
    inputs = (spending(key, 10**6, source), spending(key, 10**5, source, "p2pkh"), spending(key, 10**5, source, "p2sh-p2wpkh"))
    text = psbt.encode(Unsigned(inputs, (PaidTo(10**6, segwit(key)), PaidTo(190_000, legacy(key)))))
    digests = ours.digests(text)
    for place in range(len(text) // 2):
        other = bytearray.fromhex(text)
        other[place] ^= 1 << source.randrange(8)
        try:
            ours.explain(other.hex())
        except ValueError:
            continue
        assert psbt.encode(psbt.decode(other.hex())) == other.hex()
        assert ours.digests(other.hex()) != digests


def test_der_and_outpoints() -> None:
    source = random.Random("der")
    for bits in (1, 7, 8, 9, 128, 247, 248, 255, 256):
        r, s = source.getrandbits(bits) | 1, source.getrandbits(min(bits, 255)) | 1
        assert parse_der(der_of(r, s)) == (r, s)
    name = "ab" * 31 + "01:70000"
    assert Input(outpoint_of(name), 1, b"").name == name
    for wrong in ("ab" * 32, "ab" * 31 + ":1", "ab" * 32 + ":", "ab" * 32 + ":01", "ab" * 32 + ":-1", "ab" * 32 + ":x"):
        with pytest.raises(ValueError, match=r"."):
            outpoint_of(wrong)


@pytest.mark.parametrize(
    ("script", "bitcoin"),
    [
        # Bitcoin Core, src/test/transaction_tests.cpp and policy.cpp: at 3,000 units per 1,000 vbytes.
        (b"\x76\xa9\x14" + bytes(20) + b"\x88\xac", 546),
        (b"\xa9\x14" + bytes(20) + b"\x87", 540),
        (b"\0\x14" + bytes(20), 294),
        (b"\0\x20" + bytes(32), 330),
        (b"\x51\x20" + bytes(32), 330),
    ],
)
def test_dust_is_what_core_calls_dust(script: bytes, bitcoin: int) -> None:
    assert dust_of(script, 3_000) == bitcoin
    # Litecoin Core, src/policy/policy.h: 30,000.
    assert dust_of(script, 30_000) == 10 * bitcoin


@pytest.mark.parametrize("kinds", [("p2wpkh", "p2wpkh"), ("p2pkh",), ("p2sh-p2wpkh", "p2pkh", "p2wpkh")])
def test_what_was_signed_is_told_from_its_bytes(kinds: tuple[str, ...]) -> None:
    source = random.Random(7)
    keys = [PrivateKey(source.randbytes(32)) for _ in kinds]
    inputs = [spending(key, 50_000 + n, source, kind) for n, (key, kind) in enumerate(zip(keys, kinds, strict=True))]
    unsigned = Unsigned(tuple(inputs), (PaidTo(30_000, segwit(keys[0])),))
    digests = zip(unsigned.keys, unsigned.digests, keys, strict=True)
    signed = unsigned.signed([unlock(key_hash, digest, sign_with(key, digest)) for (_, key_hash), digest, key in digests])
    coins = [Unspent(i.name, address_of("bitcoin", i.script, "main"), i.amount, 1) for i in reversed(inputs)]
    home = address_of("bitcoin", segwit(keys[0]), "main")
    told = ProvedCoins(signed.txid, tuple(i.name for i in inputs), (Output(home, 30_000),))
    assert payer().proved(signed.raw, coins) == told
    other = address_of("bitcoin", segwit(PrivateKey(b"\x07" * 32)), "main")
    raw = bytes.fromhex(signed.raw)
    wrong = [
        (signed.raw, coins[1:]),
        (signed.raw, [*coins, Unspent("11" * 32 + ":0", home, 1, 1)]),
        (signed.raw, [replace(coins[0], address=other), *coins[1:]]),
        (signed.raw.replace((30_000).to_bytes(8, "little").hex(), (30_001).to_bytes(8, "little").hex()), coins),
        (signed.raw + "00", coins),
        (unsigned.skeleton().hex(), coins),
        (raw[:-1].hex(), coins),
        ("", coins),
    ]
    if kinds[-1] == "p2wpkh":
        wrong.append((signed.raw, [replace(coins[0], amount=coins[0].amount + 1), *coins[1:]]))
    for bytes_, spent in wrong:
        with pytest.raises(ValueError, match=r"."):
            payer().proved(bytes_, spent)
