"""Blocks of bitcoin and of Tron that are as full as their size and energy allow, for `heavy_node.served`."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from chalicelib.chains.abi import TRANSFER_TOPIC
from chalicelib.chains.utxo.facts import GENESIS
from chalicelib.chains.utxo.headers import merkle_root

TRC20 = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
_TRC20_HEX = "a614f803b6fd780986a42c78ec9c7f77e6ded13c"
_SOMEBODY = "TLyqzVGLV1srkB7dToTAEqgDSfPtXRJZYH"
_ADDRESS = "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"
_PAID = (
    '{"value":0.00000546,"n":%d,"scriptPubKey":{"asm":"0 751e76e8199196d454941c45d1b3a323f1433bd6","desc":"addr(%s)#uyjndxcw",'
    '"hex":"0014751e76e8199196d454941c45d1b3a323f1433bd6","address":"%s","type":"witness_v0_keyhash"}}'
)
_BARE = '{"value":0.00000001,"n":%d,"scriptPubKey":{"asm":"","desc":"raw()#58lrscpx","hex":"","type":"nonstandard"}}'
_SPENT = '{"txid":"%s","vout":%d,"scriptSig":{"asm":"","hex":""},"sequence":4294967293}'


class UtxoBlocks:
    """Blocks 1 to `blocks` of bitcoin, each with one transaction besides its coinbase: of `paid` outputs to an address, `bare` ones
    with an empty script, and `spent` inputs. A megabyte has room for 30,000, 110,000 or 24,000 of these."""

    def __init__(self, blocks: int, paid: int = 0, bare: int = 0, spent: int = 1) -> None:
        self._paid, self._bare, self._spent = paid, bare, spent
        (genesis, *_) = GENESIS["bitcoin", "main"]
        self._hashes = [genesis]
        self._headers: list[dict[str, Any]] = [{}]
        for number in range(1, blocks + 1):
            root = merkle_root(self._txids(number))
            time = 1_700_000_000 + 600 * number
            parent = self._hashes[-1]
            raw = (4).to_bytes(4, "little") + bytes.fromhex(parent)[::-1] + root + time.to_bytes(4, "little") + b"\0" * 8
            self._hashes.append(sha256(sha256(raw).digest()).digest()[::-1].hex())
            self._headers.append({"root": root[::-1].hex(), "time": time, "parent": parent})

    def told(self, method: str, params: Any) -> bytes:
        if method == "getblockcount":
            return b"%d" % (len(self._hashes) - 1)
        if method == "getblockhash":
            return f'"{self._hashes[params[0]]}"'.encode()
        if method == "getblock":
            return self._block(self._hashes.index(params[0]))
        raise LookupError(method)

    def _txids(self, number: int) -> list[str]:
        return [sha256(f"{what} {number}".encode()).hexdigest() for what in ("coinbase", "payment")]

    def _block(self, number: int) -> bytes:
        header, (coinbase, payment) = self._headers[number], self._txids(number)
        source = sha256(b"source").hexdigest()
        vin = ",".join(_SPENT % (source, n) for n in range(self._spent))
        vout = [_PAID % (n, _ADDRESS, _ADDRESS) for n in range(self._paid)]
        vout += [_BARE % n for n in range(self._paid, self._paid + self._bare)]
        return (
            f'{{"hash":"{self._hashes[number]}","confirmations":1,"height":{number},"version":4,"merkleroot":"{header["root"]}",'
            f'"time":{header["time"]},"nonce":0,"bits":"00000000","previousblockhash":"{header["parent"]}","nTx":2,"size":1000000,'
            f'"tx":[{{"txid":"{coinbase}","vin":[{{"coinbase":"00"}}],"vout":[{_BARE % 0}]}},'
            f'{{"txid":"{payment}","vin":[{vin}],"vout":[{",".join(vout)}],"hex":"{"00" * 1_000_000}"}}]}}'
        ).encode()


class TronBlocks:
    """Blocks 1 to `blocks` of Tron, each with one call of a contract that wrote `logs` Transfer logs of one token, of `units`."""

    def __init__(self, blocks: int, logs: int, units: int = 0) -> None:
        self._blocks, self._logs, self._units = blocks, logs, units

    def told(self, path: str, asked: Any) -> bytes:
        if path == "wallet/getblockbylimitnext":
            numbers = range(asked["startNum"], min(asked["endNum"], self._blocks + 1))
            return b'{"block":[%b]}' % b",".join(self._block(number) for number in numbers)
        if path == "wallet/gettransactioninfobyblocknum":
            return b"[%b]" % self._info(asked["num"])
        return b"{}"

    def _id(self, number: int) -> str:
        return f"{number:016x}" + sha256(b"%d" % number).hexdigest()[:48]

    def _block(self, number: int) -> bytes:
        return (
            f'{{"blockID":"{self._id(number)}","block_header":{{"raw_data":{{"number":{number},'
            f'"parentHash":"{self._id(number - 1)}",'
            f'"timestamp":{1_700_000_000_000 + 3_000 * number}}}}},"transactions":[{{"txID":"{number:064x}",'
            f'"ret":[{{"contractRet":"SUCCESS"}}],"raw_data":{{"contract":[{{"type":"TriggerSmartContract",'
            f'"parameter":{{"value":{{"owner_address":"{_SOMEBODY}"}}}}}}]}}}}]}}'
        ).encode()

    def _info(self, number: int) -> bytes:
        rows = ",".join(
            f'{{"address":"{_TRC20_HEX}","topics":["{TRANSFER_TOPIC[2:]}","{"0" * 24}{"5a" * 20}",'
            f'"{"0" * 24}{number:020x}{n:020x}"],'
            f'"data":"{self._units:064x}"}}'
            for n in range(self._logs)
        )
        return (
            f'{{"id":"{number:064x}","blockNumber":{number},"blockTimeStamp":{1_700_000_000_000 + 3_000 * number},'
            f'"receipt":{{"result":"SUCCESS"}},"log":[{rows}]}}'
        ).encode()
