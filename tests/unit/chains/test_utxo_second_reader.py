"""The second reader of bitcoin and litecoin: it agrees with our code about every order, and sees each field that is another."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from coincurve import PrivateKey

from chalicelib.chains.utxo.scripts import address_of, key_hash_of
from chalicelib.chains.utxo.second_reader import UtxoSecondReader
from chalicelib.chains.utxo.transactions import PaidTo, Unsigned, compact_size, der_of, double_sha256
from chalicelib.custody.signatures import sign_with
from chalicelib.encoding.public_keys import Chain, hash160
from chalicelib.usecases.ports.coins import Output
from chalicelib.usecases.ports.second_reader import CoinOrder
from chalicelib.usecases.ports.signing import Signed
from chalicelib.usecases.transactions.errors import ReadersDiffer
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from tests.support.utxo_orders import (
    KEYS,
    KINDS,
    LIVE,
    PLAIN,
    SOURCE,
    STRANGER,
    coin,
    legacy,
    ordered,
    proofs_of,
    push,
    segwit,
    signed,
    some_script,
)

ROOT = Path(__file__).resolve().parents[3]
ORDERS = 2_000 if os.environ.get("SWEEP") == "full" else 50


@pytest.mark.parametrize("slug", ["bitcoin", "litecoin"])
def test_both_readers_agree_about_random_orders(slug: str) -> None:
    source = random.Random(f"orders of {slug}")
    keys = [PrivateKey(source.randbytes(32)) for _ in range(8)]
    chains: tuple[Chain, ...] = ("main", "testnet", "regtest")
    for _ in range(ORDERS // 2):
        owners = [source.choice(keys) for _ in range(source.choice((1, 1, 2, 3, 12)))]
        inputs = [coin(source, owner, source.choice(KINDS), source.randrange(10**4, 10**14)) for owner in owners]
        total, scripts = sum(each.amount for each in inputs), [some_script(source) for _ in range(source.choice((1, 2, 2, 7)))]
        unsigned = Unsigned(tuple(inputs), tuple(PaidTo(total // len(scripts) - source.randrange(1, 99), s) for s in scripts))
        chain = source.choice(chains)
        order, reader = ordered(unsigned, slug, chain), UtxoSecondReader(slug, chain)
        raw = signed(unsigned, owners)
        assert sign_read_twice(LIVE[slug], "", reader, order, unsigned.digests, lambda _, raw=raw: raw) == raw
        read = reader.read(order, raw.raw)
        assert (read["fee"], read["txid"], read["version"], read["lock time"]) == (unsigned.fee, raw.txid, 2, 0)
        for n, spent in enumerate(unsigned.inputs):
            told = (read[f"input {n} outpoint"], read[f"input {n} sequence"], read[f"input {n} signer"])
            assert told == (spent.name, 0xFFFFFFFD, key_hash_of(spent.script, spent.redeem)[1].hex())
        paid = [(read[f"output {n} script"], read[f"output {n} amount"]) for n in range(len(scripts))]
        assert paid == [(output.script.hex(), output.amount) for output in unsigned.outputs]
        assert len(read) == 5 + 3 * len(inputs) + 2 * len(scripts)


FOREIGN = coin(SOURCE, STRANGER, "p2wpkh", 500)


def with_input(place: int, **fields: object) -> Unsigned:
    inputs = list(PLAIN.inputs)
    inputs[place] = replace(inputs[place], **fields)  # type: ignore[arg-type]
    return replace(PLAIN, inputs=tuple(inputs))


def with_output(**fields: object) -> Unsigned:
    return replace(PLAIN, outputs=(replace(PLAIN.outputs[0], **fields), PLAIN.outputs[1]))  # type: ignore[arg-type]


ALTERED: dict[str, tuple[Unsigned, str]] = {
    "outpoint, transaction": (with_input(0, outpoint=b"\x07" * 32 + PLAIN.inputs[0].outpoint[32:]), "input 0 outpoint"),
    "outpoint, number": (with_input(0, outpoint=PLAIN.inputs[0].outpoint[:32] + b"\x09\0\0\0"), "input 0 outpoint"),
    "legacy outpoint": (with_input(1, outpoint=b"\x07" * 36), "input 1 outpoint"),
    "amount of an input": (with_input(0, amount=999_999), "input 0 signer"),
    "amount of an input behind P2SH": (with_input(2, amount=999_999), "input 2 signer"),
    "owner of an input": (with_input(0, script=segwit(STRANGER)), "input 0 signer"),
    "owner of a legacy input": (with_input(1, script=legacy(STRANGER)), "input 1 signer"),
    "kind of an input": (with_input(0, script=legacy(KEYS[0])), "encoding"),
    "script of an output": (with_output(script=legacy(STRANGER)), "output 0 script"),
    "amount of an output": (with_output(amount=10**6 + 1), "output 0 amount"),
    "order of the outputs": (replace(PLAIN, outputs=PLAIN.outputs[::-1]), "output 0 script"),
    "order of the inputs": (replace(PLAIN, inputs=PLAIN.inputs[::-1]), "input 0 outpoint"),
    "sequence": (with_input(0, sequence=b"\xff\xff\xff\xff"), "input 0 sequence"),
    "sequence of a legacy input": (with_input(1, sequence=b"\xfe\xff\xff\xff"), "input 1 sequence"),
    "lock time": (replace(PLAIN, lock_time=b"\x01\0\0\0"), "lock time"),
    "version": (replace(PLAIN, version=b"\x01\0\0\0"), "version"),
    "missing input": (replace(PLAIN, inputs=PLAIN.inputs[:2]), "input 2 outpoint"),
    "extra input": (replace(PLAIN, inputs=(*PLAIN.inputs, FOREIGN)), "input 3 outpoint"),
    "missing output": (replace(PLAIN, outputs=PLAIN.outputs[:1]), "output 1 amount"),
    "extra output": (replace(PLAIN, outputs=(*PLAIN.outputs, PaidTo(1, legacy(KEYS[1])))), "output 2 amount"),
}


def owners_of(unsigned: Unsigned) -> list[PrivateKey]:
    keys = {hash160(key.public_key.format()): key for key in (*KEYS, STRANGER)}
    return [keys[key_hash] for _, key_hash in unsigned.keys]


@pytest.mark.parametrize("slug", ["bitcoin", "litecoin"])
@pytest.mark.parametrize("what", ALTERED)
def test_no_key_is_asked_for_an_altered_field(what: str, slug: str, caplog: pytest.LogCaptureFixture) -> None:
    """The bytes of our own code are altered, and nothing of ours looks: the digests alone are held against the library's."""
    altered, _ = ALTERED[what]

    def sign(digests: Sequence[bytes]) -> Signed:
        raise AssertionError("a key was asked")

    with pytest.raises(ReadersDiffer, match=r"in digests$"):
        sign_read_twice(LIVE[slug], "it", UtxoSecondReader(slug), ordered(PLAIN, slug), altered.digests, sign)
    assert f"ALARM live:{slug}: two readers differ about it" in caplog.text


@pytest.mark.parametrize("what", ALTERED)
def test_no_signed_bytes_with_an_altered_field_are_kept(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """The digests were as ordered, and what comes back is something else, properly signed."""
    altered, field = ALTERED[what]
    raw = signed(altered, owners_of(altered))
    with pytest.raises(ReadersDiffer) as raised:
        sign_read_twice(LIVE["bitcoin"], "it", UtxoSecondReader("bitcoin"), ordered(PLAIN), PLAIN.digests, lambda _: raw)
    assert field in str(raised.value).partition(" in ")[2].split(", ")
    assert raw.raw not in caplog.text


def test_what_is_not_altered_is_kept() -> None:
    raw = signed(PLAIN, KEYS)
    assert sign_read_twice(LIVE["bitcoin"], "", UtxoSecondReader("bitcoin"), ordered(PLAIN), PLAIN.digests, lambda _: raw) == raw


def _signed_with(change: Callable[[list[tuple[bytes, bytes]]], None]) -> Signed:
    proofs = proofs_of(PLAIN, KEYS)
    change(proofs)
    return PLAIN.signed(proofs)


def _by_another_key(place: int) -> Signed:
    keys = list(KEYS)
    keys[place] = STRANGER
    return _signed_with(lambda proofs: proofs.__setitem__(place, proofs_of(PLAIN, keys)[place]))


def _high(place: int) -> Signed:
    made = sign_with(KEYS[place], PLAIN.digests[place])
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    return _signed_with(lambda proofs: proofs.__setitem__(place, (der_of(made.r, order - made.s), proofs[place][1])))


def _padded(place: int) -> Signed:
    """The first number with a zero before it, which BIP-66 forbids."""

    def change(proofs: list[tuple[bytes, bytes]]) -> None:
        der, key = proofs[place]
        proofs[place] = (b"\x30" + bytes([der[1] + 1]) + b"\x02" + bytes([der[3] + 1]) + b"\0" + der[4:], key)

    return _signed_with(change)


def _raw(change: Callable[[str], str]) -> Signed:
    made = signed(PLAIN, KEYS)
    return Signed(change(made.raw), made.txid)


def _endless(text: str) -> str:
    """With 2^64 - 1 outputs."""
    first = PLAIN.outputs[0].amount.to_bytes(8, "little").hex()
    assert "02" + first in text
    return text.replace("02" + first, "ff" * 9 + first)


def _hash_type(text: str) -> str:
    """SIGHASH_NONE at the end of the first input's signature."""
    der = proofs_of(PLAIN, KEYS)[0][0].hex()
    assert der + "01" in text
    return text.replace(der + "01", der + "02")


BAD_SIGNATURES: dict[str, Signed] = {
    **{f"by another key, {kind}": _by_another_key(place) for place, kind in enumerate(KINDS)},
    **{f"of the upper half, {kind}": _high(place) for place, kind in enumerate(KINDS)},
    **{f"not in its shortest form, {kind}": _padded(place) for place, kind in enumerate(KINDS)},
    "of another input": _signed_with(lambda proofs: proofs.reverse()),
    "of another hash type": _raw(_hash_type),
    "nothing signed": Signed(PLAIN.skeleton().hex(), signed(PLAIN, KEYS).txid),
    "something behind the end": _raw(lambda text: text + "00"),
    "cut short": _raw(lambda text: text[:-2]),
    "with outputs without end": _raw(_endless),
    "capitals": _raw(str.upper),
    "no hex": _raw(lambda text: text[:-1] + "x"),
    "nothing": _raw(lambda text: ""),
    "another id": Signed(signed(PLAIN, KEYS).raw, "00" * 32),
}


@pytest.mark.parametrize("what", BAD_SIGNATURES)
def test_no_other_signature_is_kept(what: str, caplog: pytest.LogCaptureFixture) -> None:
    def sign(digests: Sequence[bytes]) -> Signed:
        return BAD_SIGNATURES[what]

    with pytest.raises(ReadersDiffer):
        sign_read_twice(LIVE["bitcoin"], "it", UtxoSecondReader("bitcoin"), ordered(PLAIN), PLAIN.digests, sign)
    assert not any(der.hex() in caplog.text for der, _ in proofs_of(PLAIN, KEYS)), "who reads the log could send it"


def test_every_byte_of_signed_bytes_is_looked_at() -> None:
    source, order, reader = random.Random("bits"), ordered(PLAIN), UtxoSecondReader("bitcoin")
    made, wanted = signed(PLAIN, KEYS), UtxoSecondReader("bitcoin").built(ordered(PLAIN)).reading
    for place in range(0, len(made.raw) // 2, 1 if ORDERS > 50 else 7):
        other = bytearray.fromhex(made.raw)
        other[place] ^= 1 << source.randrange(8)
        try:
            read = reader.read(order, other.hex())
        except ValueError:
            continue
        assert read != {**wanted, "txid": made.txid}, place


def test_a_script_in_hexadecimal_digits_is_no_coin_of_ours() -> None:
    """The library would read it as the script that the digits stand for."""
    inner = PaidTo(10**6, legacy(KEYS[1]).hex().encode())
    raw = b"".join([b"\2\0\0\0", compact_size(1), bytes(range(36)), b"\0", bytes(4), compact_size(1)])
    raw += inner.amount.to_bytes(8, "little") + push(inner.script) + bytes(4)
    outpoint = f"{double_sha256(raw)[::-1].hex()}:0"
    with pytest.raises(ValueError, match="no transaction that the library reads"):
        UtxoSecondReader("bitcoin").built(_coin_with(1, outpoint=outpoint, previous=raw.hex()))


def _coin_with(place: int, **fields: object) -> CoinOrder:
    order = ordered(PLAIN)
    inputs = list(order.inputs)
    inputs[place] = replace(inputs[place], **fields)  # type: ignore[arg-type]
    return replace(order, inputs=tuple(inputs))


OTHER = coin(random.Random("other"), KEYS[1], "p2pkh", 10**6 + 1)
BAD_ORDERS: dict[str, tuple[CoinOrder, str]] = {
    "another previous transaction": (_coin_with(1, previous=OTHER.previous.hex()), "another transaction"),
    "no previous transaction": (_coin_with(1, previous=""), "another transaction"),
    "a legacy amount on record": (_coin_with(1, amount=10**6 + 2), "another amount or owner"),
    "a legacy owner on record": (_coin_with(1, address=address_of("bitcoin", legacy(STRANGER), "main")), "another amount or owner"),
    "a number that it has not": (_coin_with(1, outpoint=f"{PLAIN.inputs[1].name.partition(':')[0]}:9"), "no transaction"),
    "another script behind P2SH": (_coin_with(2, redeem=segwit(STRANGER).hex()), "no plain output"),
    "no script behind P2SH": (_coin_with(2, redeem=""), "no plain output"),
    "an owner on another network": (_coin_with(0, address=address_of("litecoin", segwit(KEYS[0]), "main")), "another network"),
    "an owner on the testnet": (_coin_with(0, address=address_of("bitcoin", segwit(KEYS[0]), "testnet")), "another network"),
    "an owner of many keys": (_coin_with(0, address=address_of("bitcoin", b"\0\x20" + bytes(32), "main")), "no plain output"),
    "no owner": (_coin_with(0, address=""), "."),
    "no outpoint": (_coin_with(0, outpoint="ab:0"), "."),
    "more paid than spent": (replace(ordered(PLAIN), outputs=(Output(ordered(PLAIN).outputs[0].address, 10**9),)), "greater"),
    "a recipient on another network": (
        replace(ordered(PLAIN), outputs=(Output(address_of("litecoin", segwit(STRANGER), "main"), 10**6),)),
        "different from transaction network",
    ),
    "nobody to pay": (replace(ordered(PLAIN), outputs=(Output("", 10**6),)), "address"),
}


@pytest.mark.parametrize("what", BAD_ORDERS)
def test_an_order_that_the_library_makes_nothing_of_is_not_signed(what: str, caplog: pytest.LogCaptureFixture) -> None:
    order, words = BAD_ORDERS[what]

    def sign(digests: Sequence[bytes]) -> Signed:
        raise AssertionError("a key was asked")

    with pytest.raises(ReadersDiffer, match=words):
        sign_read_twice(LIVE["bitcoin"], "it", UtxoSecondReader("bitcoin"), order, PLAIN.digests, sign)
    assert "ALARM live:bitcoin: " in caplog.text


@pytest.mark.parametrize("chain", ["main", "testnet", "regtest"])
@pytest.mark.parametrize("slug", ["bitcoin", "litecoin"])
def test_every_address_stands_for_the_same_script(slug: str, chain: Chain) -> None:
    source = random.Random(f"{slug} {chain}")
    spent = coin(source, KEYS[0], "p2wpkh", 10**9)
    for _ in range(ORDERS):
        unsigned = Unsigned((spent,), (PaidTo(10**6, some_script(source)),))
        reading = UtxoSecondReader(slug, chain).built(ordered(unsigned, slug, chain)).reading
        assert reading["output 0 script"] == unsigned.outputs[0].script.hex()


_PROGRAM = """
import sys
opened = []
def hook(event, args):
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        opened.append(str(args[0]))
sys.addaudithook(hook)
sys.path.insert(0, {root!r})
from chalicelib.chains.utxo.second_reader import UtxoSecondReader
from chalicelib.usecases.transactions.two_readers import sign_read_twice
from tests.support.utxo_orders import KEYS, LIVE, PLAIN, ordered, signed
reader, raw = UtxoSecondReader("bitcoin"), signed(PLAIN, KEYS)
assert "bitcoinlib" not in sys.modules
opened.clear()
assert sign_read_twice(LIVE["bitcoin"], "", reader, ordered(PLAIN), PLAIN.digests, lambda _: raw) == raw
assert "bitcoinlib" in sys.modules
print("first", *sorted({{name.rpartition("/")[2] for name in opened}}))
opened.clear()
assert sign_read_twice(LIVE["bitcoin"], "", reader, ordered(PLAIN), PLAIN.digests, lambda _: raw) == raw
print("then", *opened)
unwanted = ("sqlalchemy", "sqlite3", "requests", "bitcoinlib.wallets", "bitcoinlib.db", "bitcoinlib.services")
print("loaded", *[name for name in unwanted if name in sys.modules])
"""


def test_the_library_gets_a_folder_for_its_import_and_nothing_else(tmp_path: Path) -> None:
    """Signing works where nothing but the temporary folder can be written, as on Lambda, and leaves no file there. It opens
    files while it is imported, before it sees an order, and none afterwards: no log, no database."""
    environment = {"HOME": "/proc/none", "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(root=str(ROOT))],
        cwd="/proc",  # nobody can write here
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, then, loaded = done.stdout.splitlines()
    copied = {"config.ini", "install.log", "networks.json"} | {
        name for name in first.split() if name.startswith("providers") and name.endswith(".json")
    }
    assert set(first.split()) == {"first", *copied}
    assert (then.split(), loaded.split()) == (["then"], ["loaded"])
    assert not list(tmp_path.iterdir())
