"""Whole published vectors: what signed transactions of EVM chains, accounts of BIP-44 and BIP-84 and Tron's keys come to.

BIP-32 is in test_custody_bip32.py, BIP-143 in test_utxo_transactions.py, BIP-173, BIP-350 and EIP-55 in test_address_rules*.py,
Tron's transactions in test_tron_transactions.py. BIP-49 is not here: no account is derived by it.
"""

from __future__ import annotations

import hashlib

import pytest
import rlp
from coincurve import PrivateKey

from chalicelib.chains.evm.transactions import Unsigned, assemble, decode_payload, signer
from chalicelib.custody.bip32 import ExtendedPrivateKey
from chalicelib.custody.derive import account_path
from chalicelib.custody.seed import account_xpubs
from chalicelib.encoding import base58check
from chalicelib.encoding.keccak import keccak256
from chalicelib.encoding.public_keys import address_of
from chalicelib.usecases.ports.signing import Signature

# ethereum/tests, TransactionTests/EIP155/ttTransactionTestEip155VitaliksTests.json: Vitalik_1 to 6 and 8 to 11 (7 is 6 again).
# The nth has nonce n, 21,000 (n + 1) gas at 20 Gwei + n, and moves n ** 3. Signed bytes, id, sender.
EIP155 = [
    (
        "f864808504a817c800825208943535353535353535353535353535353535353535808025a0044852b2a670ade5407e78fb2863c51de9fcb96542a07186fe3aed"
        "a6bb8a116da0044852b2a670ade5407e78fb2863c51de9fcb96542a07186fe3aeda6bb8a116d",
        "b1e2188bc490908a78184e4818dca53684167507417fdb4c09c2d64d32a9896a",
        "f0f6f18bca1b28cd68e4357452947e021241e9ce",
    ),
    (
        "f864018504a817c80182a410943535353535353535353535353535353535353535018025a0489efdaa54c0f20c7adf612882df0950f5a951637e0307cdcb4c67"
        "2f298b8bcaa0489efdaa54c0f20c7adf612882df0950f5a951637e0307cdcb4c672f298b8bc6",
        "e62703f43b6f10d42b520941898bf710ebb66dba9df81702702b6d9bf23fef1b",
        "23ef145a395ea3fa3deb533b8a9e1b4c6c25d112",
    ),
    (
        "f864028504a817c80282f618943535353535353535353535353535353535353535088025a02d7c5bef027816a800da1736444fb58a807ef4c9603b7848673f7e"
        "3a68eb14a5a02d7c5bef027816a800da1736444fb58a807ef4c9603b7848673f7e3a68eb14a5",
        "1f621d7d8804723ab6fec606e504cc893ad4fe4a545d45f499caaf16a61d86dd",
        "2e485e0c23b4c3c542628a5f672eeab0ad4888be",
    ),
    (
        "f865038504a817c803830148209435353535353535353535353535353535353535351b8025a02a80e1ef1d7842f27f2e6be0972bb708b9a135c38860dbe73c27"
        "c3486c34f4e0a02a80e1ef1d7842f27f2e6be0972bb708b9a135c38860dbe73c27c3486c34f4de",
        "99b6455776b1988840d0074c23772cb6b323eb32c5011e4a3a1d06d27b2eb425",
        "82a88539669a3fd524d669e858935de5e5410cf0",
    ),
    (
        "f865048504a817c80483019a28943535353535353535353535353535353535353535408025a013600b294191fc92924bb3ce4b969c1e7e2bab8f4c93c3fc6d0a"
        "51733df3c063a013600b294191fc92924bb3ce4b969c1e7e2bab8f4c93c3fc6d0a51733df3c060",
        "0b2b499d5a3e729bcc197e1a00f922d80890472299dd1c648988eb08b5b1ff0a",
        "f9358f2538fd5ccfeb848b64a96b743fcc930554",
    ),
    (
        "f865058504a817c8058301ec309435353535353535353535353535353535353535357d8025a04eebf77a833b30520287ddd9478ff51abbdffa30aa90a8d655db"
        "a0e8a79ce0c1a04eebf77a833b30520287ddd9478ff51abbdffa30aa90a8d655dba0e8a79ce0c1",
        "99a214f26aaf2804d84367ac8f33ff74b3a94e68baf820668f3641819ced1216",
        "a8f7aba377317440bc5b26198a363ad22af1f3a4",
    ),
    (
        "f866068504a817c80683023e3894353535353535353535353535353535353535353581d88025a06455bf8ea6e7463a1046a0b52804526e119b4bf5136279614e"
        "0b1e8e296a4e2fa06455bf8ea6e7463a1046a0b52804526e119b4bf5136279614e0b1e8e296a4e2d",
        "4ed0b4b20536cce62389c6b95ff6a517489b6045efdefeabb4ecf8707d99e15d",
        "f1f571dc362a0e5b2696b8e775f8491d3e50de35",
    ),
    (
        "f867078504a817c807830290409435353535353535353535353535353535353535358201578025a052f1a9b320cab38e5da8a8f97989383aab0a49165fc91c73"
        "7310e4f7e9821021a052f1a9b320cab38e5da8a8f97989383aab0a49165fc91c737310e4f7e9821021",
        "a40eb7000de852898a385a19312284bb06f6a9b5d8d03e0b8fb5df2f07f9fe94",
        "d37922162ab7cea97c97a87551ed02c9a38b7332",
    ),
    (
        "f867088504a817c8088302e2489435353535353535353535353535353535353535358202008025a064b1702d9298fee62dfeccc57d322a463ad55ca201256d01"
        "f62b45b2e1c21c12a064b1702d9298fee62dfeccc57d322a463ad55ca201256d01f62b45b2e1c21c10",
        "588df025c4c2d757d3e314bd3dfbfe352687324e6b8557ad1731585e96928aed",
        "9bddad43f934d313c2b79ca28a432dd2b7281029",
    ),
    (
        "f867098504a817c809830334509435353535353535353535353535353535353535358202d98025a052f8f61201b2b11a78d6e866abc9c3db2ae8631fa656bfe5"
        "cb53668255367afba052f8f61201b2b11a78d6e866abc9c3db2ae8631fa656bfe5cb53668255367afb",
        "f39c7dac06a9f3abf09faf5e30439a349d3717611b3ed337cd52b0d192bc72da",
        "3c24d7329e92f84f08556ceb6df1cdb0104ca49f",
    ),
]


@pytest.mark.parametrize("number", range(len(EIP155)))
def test_signed_transactions_of_eip155(number: int) -> None:
    raw, txid, sender = EIP155[number]
    unsigned = Unsigned(1, number, 21_000 * (number + 1), 20 * 10**9 + number, None, b"\x35" * 20, number**3, b"")
    *_, v, r, s = rlp.decode(bytes.fromhex(raw))
    signature = Signature(int.from_bytes(r), int.from_bytes(s), int.from_bytes(v) - 37)
    signed = assemble(unsigned, signature)
    assert (signed.raw, signed.txid) == ("0x" + raw, "0x" + txid)
    assert signer(unsigned, signature).lower() == "0x" + sender


# ethereum/tests, TransactionTests/ttEIP1559/GasLimitPriceProductOverflowtMinusOne.json, and maxFeePerGas00prefix.json beside it.
DEAREST = (
    "02f885018084773594009f02ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff82520894095e7baea6a6c7c4c2dfeb977efac326af552d"
    "878080c080a05cbd172231fc0735e0fb994dd5b1a4939170a260b36f0427a8a80866b063b948a07c230f7f578dd61785c93361b9871c0706ebfa6d06e3f4491dc9"
    "558c5202ed36"
)
LEADING_ZERO = (
    "02f88701808477359400a100ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff82520894095e7baea6a6c7c4c2dfeb977efac326af"
    "552d878080c080a05cbd172231fc0735e0fb994dd5b1a4939170a260b36f0427a8a80866b063b948a07c230f7f578dd61785c93361b9871c0706ebfa6d06e3f449"
    "1dc9558c5202ed36"
)
# ethereum/eth-account, tests/core/test_typed_transactions.py, "df-1": its digest is told, its signer is not.
OF_ETH_ACCOUNT = (
    "02f8758205390284773594008477359400830186a09496216849c49358b10257cb55b28ea603c874b05e865af3107a4000825544c001a0c3000cd391f991169ebf"
    "d5d3b9e93c89d31a61c998a21b07a11dc6b9d66f8a8ea022cfe8424b2fbd78b16c9911da1be2349027b0a3c40adf4b6459222323773f74"
)


def of_type_2(raw: str) -> tuple[bytes, Signature]:
    """What was signed, and the signature."""
    *fields, parity, r, s = rlp.decode(bytes.fromhex(raw)[1:])
    return b"\x02" + rlp.encode(fields), Signature(*map(int.from_bytes, (r, s, parity)))


def test_a_signed_transaction_of_eip1559() -> None:
    payload, signature = of_type_2(DEAREST)
    to = bytes.fromhex("095e7baea6a6c7c4c2dfeb977efac326af552d87")
    unsigned = Unsigned(1, 0, 21_000, 0x02FF << 232 | (1 << 232) - 1, 2 * 10**9, to, 0, b"")
    assert unsigned.payload() == payload
    assert decode_payload(payload) == unsigned
    signed = assemble(unsigned, signature)
    assert signed.raw == "0x" + DEAREST
    assert signed.txid == "0xdad8bff3ecfcf95169b1d5625b47f3372be795802bc4fe570991cf332f609334"
    assert signer(unsigned, signature).lower() == "0xae2aec498d20869d441eaaf708fb1e375ae1787d"


def test_a_typed_transaction_of_eth_accounts_tests() -> None:
    payload, signature = of_type_2(OF_ETH_ACCOUNT)
    to = bytes.fromhex("96216849c49358b10257cb55b28ea603c874b05e")
    unsigned = Unsigned(1337, 2, 100_000, 2 * 10**9, 2 * 10**9, to, 10**14, b"\x55\x44")
    assert unsigned.payload() == payload
    assert keccak256(payload).hex() == "a1ea3121940930f7e7b54506d80717f14c5163807951624c36354202a8bffda6"
    assert assemble(unsigned, signature).raw == "0x" + OF_ETH_ACCOUNT


def test_a_leading_zero_is_not_signed() -> None:
    payload, _ = of_type_2(LEADING_ZERO)
    with pytest.raises(ValueError):
        decode_payload(payload)


# BIP-84, "Test vectors"; the same words' account as SLIP-132 spells it with BIP-32's own version bytes.
WORDS = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
SEED = hashlib.pbkdf2_hmac("sha512", WORDS.encode(), b"mnemonic", 2048)
ZPRV = "zprvAdG4iTXWBoARxkkzNpNh8r6Qag3irQB8PzEMkAFeTRXxHpbF9z4QgEvBRmfvqWvGp42t42nvgGpNgYSJA9iefm1yYNZKEm7z6qUWCroSQnE"
ZPUB = "zpub6rFR7y4Q2AijBEqTUquhVz398htDFrtymD9xYYfG1m4wAcvPhXNfE3EfH1r1ADqtfSdVCToUG868RvUUkgDKf31mGDtKsAYz2oz2AGutZYs"
XPUB = "xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3XyuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V"


def test_the_account_of_bip84() -> None:
    account = ExtendedPrivateKey.master(SEED).derive(account_path("live", "bitcoin"))
    assert base58check.decode(account.xprv())[4:] == base58check.decode(ZPRV)[4:]
    assert base58check.decode(account.xpub())[4:] == base58check.decode(ZPUB)[4:]
    assert account.xpub() == XPUB
    (stored,) = [x.xpub for x in account_xpubs(SEED, 0) if (x.realm, x.pool) == ("live", "bitcoin")]
    assert stored == XPUB


@pytest.mark.parametrize(
    ("path", "wif", "public", "address"),
    [
        (
            "m/84'/0'/0'/0/0",
            "KyZpNDKnfs94vbrwhJneDi77V6jF64PWPF8x5cdJb8ifgg2DUc9d",
            "0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c",
            "bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu",
        ),
        (
            "m/84'/0'/0'/0/1",
            "Kxpf5b8p3qX56DKEe5NqWbNUP9MnqoRFzZwHRtsFqhzuvUJsYZCy",
            "03e775fd51f0dfb8cd865d9ff1cca2a158cf651fe997fdc9fee9c1d3b5e995ea77",
            "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g",
        ),
        (
            "m/84'/0'/0'/1/0",
            "KxuoxufJL5csa1Wieb2kp29VNdn92Us8CoaUG3aGtPtcF3AzeXvF",
            "03025324888e429ab8e3dbaf1f7802648b9cd01e9b418485c5fa4c1b9b5700e1a6",
            "bc1q8c6fshw2dlwun7ekn9qwf37cu2rn755upcp6el",
        ),
    ],
)
def test_the_addresses_of_bip84(path: str, wif: str, public: str, address: str) -> None:
    key = ExtendedPrivateKey.master(SEED).derive(path).key
    assert base58check.decode(wif) == b"\x80" + key.secret + b"\x01"
    assert key.public_key.format().hex() == public
    assert address_of("bitcoin", key.public_key.format(compressed=False)[1:]) == address


@pytest.mark.parametrize(("pool", "coin", "purpose"), [("evm", 60, 44), ("tron", 195, 44), ("bitcoin", 0, 84), ("litecoin", 2, 84)])
def test_paths_of_bip44_with_the_coin_types_of_slip44(pool: str, coin: int, purpose: int) -> None:
    """https://github.com/satoshilabs/slips/blob/master/slip-0044.md; "m / purpose' / coin_type' / account'"."""
    assert account_path("live", pool) == f"m/{purpose}'/{coin}'/0'"


def test_the_address_of_trons_published_key() -> None:
    """tronprotocol/tron-deployment: the witness of a private network, its key and its address."""
    key = PrivateKey(bytes.fromhex("da146374a75310b9666e834ee4ad0866d6f4035967bfc76217c5a495fff9f0d0"))
    address = address_of("tron", key.public_key.format(compressed=False)[1:])
    assert address == "TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY"
    assert base58check.decode(address).hex() == "41928c9af0651632157ef27a2cf17ca72c575a4d21"
