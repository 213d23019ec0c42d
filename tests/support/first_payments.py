"""The first payment of a function that has just started, in a process that has the unzipped deployment package and nothing else.

The order and its signed bytes are made here, by our own code. The function's modules, the clients of AWS and the node, and the
second reader with its family's library come from the package.
"""

from __future__ import annotations

import os
import pickle
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from coincurve import PrivateKey

from chalicelib.chains.abi import transfer_call
from chalicelib.chains.evm import transactions as evm
from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.tron import transactions as tron
from chalicelib.chains.utxo import transactions as utxo
from chalicelib.chains.utxo.scripts import address_of
from chalicelib.custody.signatures import sign_with
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.encoding import base58check
from chalicelib.encoding.public_keys import evm_address, hash160, tron_address
from chalicelib.usecases.ports.coins import Output
from chalicelib.usecases.ports.second_reader import CoinOrder, Order, OrderedCoin
from infra.rehearse.functions import without_privileges

Case = tuple[Network, Order | CoinOrder, str]
"""A network, an order, and its signed bytes."""

_KEY = PrivateKey()
_PUBLIC = _KEY.public_key.format(compressed=False)[1:]
_PAY = """
import pickle, sys, time
sys.path.insert(0, sys.argv[1])
began = time.process_time()
import app
from chalicelib import wiring
from chalicelib.store import commit
from chalicelib.workers import payout
wired = wiring.services()
wired.store.models.connection.client, wired.queues, wired.client("kms"), wired.payouts, wired.signer
chains = wired.wiring.chains
for case in sys.argv[2:]:
    network, order, raw = pickle.loads(bytes.fromhex(case))
    coins = network.family == "utxo"
    chains.reader(network), chains.coin_payer(network) if coins else chains.payer(network)
    started = time.process_time()
    reader = chains.second_readers.coins(network) if coins else chains.second_readers.accounts(network)
    built, read = reader.built(order), reader.read(order, raw)
    done = time.process_time()
    assert built.reading.items() <= read.items(), (built, read)
    with open("/proc/self/status") as status:  # getrusage's is not less than that of the process which started this one
        memory = int(status.read().partition("VmHWM:")[2].split()[0]) / 1024
    print(network.slug, started - began, done - started, memory)
"""


def cases() -> dict[str, Case]:
    """An order of each family."""
    return {"EVM, a token": _evm_token(), "Tron, a token": _tron_token(), "bitcoin": _bitcoin()}


def first_payment(package: Path, case: Case, *options: str) -> list[float]:
    """Read the case twice in a new process with these options of Python. CPU seconds of the function's own start and of its second
    reader, and the process's largest memory in MB. Raises CalledProcessError where something is not in the package."""
    (line,) = payments(package, [case], *options)
    return [float(part) for part in line.split()[1:]]


def payments(package: Path, several: Sequence[Case], *options: str) -> list[str]:
    """The same of several cases, one after the other in one process: for each a line that begins with its network.

    As in Lambda: no other packages (-I, -S), and nothing can be written beside the modules or into the home folder; where the
    package is read-only, by root neither.
    """
    environment = {
        **os.environ, "STAGE": "prod", "HOME": "/nonexistent", "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none",
    }  # fmt: skip
    environment.pop("WEBHOOKS_ALLOW_PRIVATE", None)  # the tests' own, and no deployment takes it
    program = [
        *without_privileges(),
        sys.executable,
        "-I",
        "-S",
        "-B",
        *options,
        "-c",
        _PAY,
        str(package),
        *(pickle.dumps(case).hex() for case in several),
    ]
    done = subprocess.run(program, cwd=package, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def _network(slug: str) -> Network:
    (found,) = [network for network in default_networks("live") if network.slug == slug]
    return replace(found, rpc_url="https://node.example")  # nothing is asked


def _evm_token() -> Case:
    network, recipient, contract = _network("ethereum"), "0x" + secrets.token_hex(20), "0x" + secrets.token_hex(20)
    gas, rate, call = 60_000, 30 * 10**9, transfer_call(recipient, 1_000_000)
    unsigned = evm.Unsigned(1, 7, gas, rate, 10**9, bytes.fromhex(contract[2:]), 0, call).payload().hex()
    order = Order("payment", evm_address(_PUBLIC), recipient, contract, 1_000_000, 7, gas * rate, unsigned)
    payer = EvmPayer(network, None)  # type: ignore[arg-type]
    return network, order, payer.assemble(unsigned, sign_with(_KEY, payer.digest(unsigned))).raw


def _tron_token() -> Case:
    owner, recipient, contract = tron_address(_PUBLIC), _tron_address(), _tron_address()
    reference = tron.Reference(b"\1\2", b"12345678", 1_790_000_060_007, 1_790_000_000_007)
    made = tron.Unsigned("TriggerSmartContract", owner, 1_000_000, reference, recipient, contract, fee_limit=10**7)
    order = Order("payment", owner, recipient, contract, 1_000_000, 7, 2 * 10**7, made.encode().hex())
    return _network("tron"), order, tron.assemble(made.encode(), sign_with(_KEY, bytes.fromhex(made.txid))).raw


def _tron_address() -> str:
    return base58check.encode(b"\x41" + secrets.token_bytes(20))


def _bitcoin() -> Case:
    script = b"\0\x14" + hash160(_KEY.public_key.format())
    spent = utxo.Input(secrets.token_bytes(32) + bytes(4), 10**8, script)
    paid = (utxo.PaidTo(6 * 10**7, b"\0\x14" + secrets.token_bytes(20)), utxo.PaidTo(39 * 10**6, script))
    made = utxo.Unsigned((spent,), paid)
    coin = OrderedCoin(spent.name, spent.amount, address_of("bitcoin", script, "main"))
    order = CoinOrder((coin,), tuple(Output(address_of("bitcoin", each.script, "main"), each.amount) for each in paid))
    signature = sign_with(_KEY, made.digests[0])
    signed = made.signed([(utxo.der_of(signature.r, signature.s), _KEY.public_key.format())])
    return _network("bitcoin"), order, signed.raw
