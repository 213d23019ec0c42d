"""Payments on a real node, from the estimate to the receipt, and everything that the node may say against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from chalicelib.chains.evm.payer import EvmPayer
from chalicelib.chains.evm.transactions import decode_payload
from chalicelib.chains.providers import Health, Node, Providers
from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.domain.catalogue.catalogue import default_networks
from chalicelib.usecases.ports.accounts import Explained, Payment
from chalicelib.usecases.ports.failures import InsufficientFunds, Refused, Unavailable
from chalicelib.usecases.ports.signing import Signed
from infra.local import tokens
from infra.local.nodes import mine, mined
from infra.local.tokens import call_data, deploy
from tests.nodes.conftest import Chain, Key
from tests.nodes.sending import send, send_native, send_token

pytestmark = pytest.mark.nodes

ETHER = 10**18


def signed(chain: Chain, key: Key, payment: Payment) -> Signed:
    unsigned = chain.payer.prepare(payment)
    signature = key.sign(chain.payer.digest(unsigned))
    assert chain.payer.signer(unsigned, signature) == key.address
    return chain.payer.assemble(unsigned, signature)


def test_native_payment_from_estimate_to_receipt(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    payment = Payment(key.address, stranger, None, ETHER // 3, nonce=chain.payer.next_nonce(key.address))
    assert payment.nonce == 0
    most = chain.payer.estimate(payment).fee
    unsigned = chain.payer.prepare(payment)
    assert chain.payer.explain(unsigned) == Explained(1, 0, stranger, None, ETHER // 3, fee=most)
    done = chain.payer.assemble(unsigned, key.sign(chain.payer.digest(unsigned)))
    chain.payer.broadcast(done.raw)
    mined(chain.rpc, done.txid)
    receipt = chain.reader.receipt(done.txid)
    assert receipt is not None
    assert receipt.success
    assert 0 < receipt.fee <= most
    assert chain.reader.balance(stranger) == ETHER // 3
    assert chain.payer.next_nonce(key.address) == 1


@pytest.mark.parametrize("coin", ["usdt", "usdc"])
def test_token_payment_from_estimate_to_receipt(chain: Chain, stranger: str, coin: str) -> None:
    """USDT's transfer returns nothing, USDC's returns true."""
    contract = chain.usdt if coin == "usdt" else chain.usdc
    key = chain.funded(wei=ETHER, **{coin: 5_000_000})
    payment = Payment(key.address, stranger, contract, 1_234_567, nonce=0, priority="urgent")
    unsigned = chain.payer.prepare(payment)
    assert replace(chain.payer.explain(unsigned), fee=0) == Explained(1, 0, stranger, contract, 1_234_567)
    height = chain.reader.tip()
    done = chain.payer.assemble(unsigned, key.sign(chain.payer.digest(unsigned)))
    chain.payer.broadcast(done.raw)
    mined(chain.rpc, done.txid)
    receipt = chain.reader.receipt(done.txid)
    assert receipt is not None
    assert receipt.success
    assert receipt.fee <= chain.payer.estimate(payment).fee * 2
    assert [(t.txid, t.amount) for t in chain.proven_to(stranger, height)] == [(done.txid, 1_234_567)]
    assert chain.reader.balance(key.address, contract) == 5_000_000 - 1_234_567


def test_a_tokens_quote_is_that_of_an_address_that_never_had_it(chain: Chain, stranger: str) -> None:
    """A word of storage that was zero costs four times one that was not (EIP-2200): nobody shall be charged too little."""
    key = chain.funded(wei=ETHER, usdc=10)
    quoted = chain.payer.estimate(Payment(key.address, key.address, chain.usdc, 1, nonce=0))
    first = chain.payer.estimate(Payment(key.address, stranger, chain.usdc, 1, nonce=0)).fee
    again = chain.payer.estimate(Payment(key.address, chain.funded(usdc=10).address, chain.usdc, 1, nonce=0)).fee
    assert first * 0.95 <= quoted.fee <= first * 1.05 and again < 0.8 * first
    assert quoted.sweep == quoted.fee


def test_contract_and_recipient_may_be_spelled_with_a_checksum(chain: Chain) -> None:
    key, other = chain.funded(usdc=10), Key()
    upper = "0x" + chain.usdc[2:].upper()
    explained = chain.payer.explain(chain.payer.prepare(Payment(key.address, other.address, upper, 3, nonce=0)))
    assert replace(explained, fee=0) == Explained(1, 0, other.address.lower(), chain.usdc, 3)


class WithoutBaseFee(JsonRpc):
    """As before London; anvil can be started so, but a node that leaves the field out is the same to us."""

    def batch(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        return [
            {name: value for name, value in answer.items() if name != "baseFeePerGas"} if isinstance(answer, dict) else answer
            for answer in super().batch(requests)
        ]


def test_a_chain_without_a_base_fee_gets_legacy_transactions(chain: Chain, stranger: str) -> None:
    payer = EvmPayer(chain.network, WithoutBaseFee(chain.node.url))
    key = chain.funded(wei=ETHER)
    unsigned = payer.prepare(Payment(key.address, stranger, None, 5, nonce=0))
    assert not unsigned.startswith("0x02")
    assert replace(payer.explain(unsigned), fee=0) == Explained(1, 0, stranger, None, 5)
    done = payer.assemble(unsigned, key.sign(payer.digest(unsigned)))
    payer.broadcast(done.raw)
    assert mined(chain.rpc, done.txid)["status"] == "0x1"
    told = chain.rpc.call("eth_getTransactionByHash", [done.txid])
    assert (told["type"], told["from"]) == ("0x0", key.address.lower())


def test_priorities_raise_the_tip_and_nothing_else(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    fees = []
    for priority in ("low", "normal", "high", "urgent"):
        unsigned = chain.payer.prepare(Payment(key.address, stranger, None, 5, nonce=0, priority=priority))
        # Signed by anyone, so that the second implementation can read it.
        raw = chain.payer.assemble(unsigned, key.sign(chain.payer.digest(unsigned))).raw
        fields = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        fees.append((fields["maxPriorityFeePerGas"], fields["maxFeePerGas"] - fields["maxPriorityFeePerGas"], fields["gas"]))
    tip = int(chain.rpc.call("eth_maxPriorityFeePerGas"), 16)
    base = int(chain.rpc.call("eth_getBlockByNumber", ["latest", False])["baseFeePerGas"], 16)
    assert [fee[0] for fee in fees] == [tip * 8 // 10, tip, tip * 15 // 10, tip * 2]
    assert {fee[1:] for fee in fees} == {(2 * base, 21_000)}


def test_broadcast_again_and_again(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    chain.rpc.call("evm_setAutomine", [False])
    try:
        done = signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0))
        chain.payer.broadcast(done.raw)
        chain.payer.broadcast(done.raw)
        mine(chain.rpc)
    finally:
        chain.rpc.call("evm_setAutomine", [True])
    chain.payer.broadcast(done.raw)
    chain.payer.broadcast(done.raw.removeprefix("0x"))
    mine(chain.rpc, 2)
    chain.payer.broadcast(done.raw)
    assert chain.reader.balance(stranger) == 5


def test_another_transaction_with_the_same_nonce_is_refused(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    first = signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0))
    second = signed(chain, key, Payment(key.address, stranger, None, 6, nonce=0))
    chain.payer.broadcast(first.raw)
    mined(chain.rpc, first.txid)
    with pytest.raises(Refused, match="nonce too low"):
        chain.payer.broadcast(second.raw)
    assert chain.reader.balance(stranger) == 5


def test_a_replacement_that_pays_no_more_is_refused(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    chain.rpc.call("evm_setAutomine", [False])
    try:
        chain.payer.broadcast(signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0)).raw)
        second = signed(chain, key, Payment(key.address, stranger, None, 6, nonce=0, priority="low"))
        with pytest.raises(Refused, match="underpriced"):
            chain.payer.broadcast(second.raw)
        mine(chain.rpc)
    finally:
        chain.rpc.call("evm_setAutomine", [True])
    assert chain.reader.balance(stranger) == 5


@pytest.mark.parametrize("kind", ["fees of 1559", "legacy"])
def test_a_renewed_payment_replaces_the_one_before(chain: Chain, stranger: str, kind: str) -> None:
    key = chain.funded(wei=ETHER)
    payer = chain.payer if kind != "legacy" else EvmPayer(chain.network, WithoutBaseFee(chain.node.url))
    old = payer.prepare(Payment(key.address, stranger, None, 5, nonce=0))
    new = payer.renew(old, "normal", key.address)
    assert payer.renewable(old, "0x")
    assert replace(payer.explain(new), fee=0) == replace(payer.explain(old), fee=0)
    dear, dearer = (decode_payload(bytes.fromhex(text[2:])) for text in (old, new))
    assert (dearer.gas, dearer.tip is None) == (dear.gas, kind == "legacy")
    assert dearer.max_fee >= -(-dear.max_fee * 9 // 8)
    assert dear.tip is None or dearer.tip is None or dearer.tip >= -(-dear.tip * 9 // 8)
    first, second = (payer.assemble(text, key.sign(payer.digest(text))) for text in (old, new))
    chain.rpc.call("evm_setAutomine", [False])
    try:
        payer.broadcast(first.raw)
        payer.broadcast(second.raw)
        assert chain.rpc.call("eth_getTransactionByHash", [first.txid]) is None
        with pytest.raises(Refused, match="underpriced"):
            payer.broadcast(first.raw)
        mine(chain.rpc)
    finally:
        chain.rpc.call("evm_setAutomine", [True])
    receipt = chain.reader.receipt(second.txid)
    assert receipt is not None and receipt.fee is not None
    assert receipt.fee <= payer.explain(new).fee
    assert chain.reader.balance(stranger) == 5
    with pytest.raises(Refused, match="nonce too low"):
        payer.broadcast(first.raw)


def test_a_replacement_has_its_ceiling_and_its_funds(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    old = decode_payload(bytes.fromhex(chain.payer.prepare(Payment(key.address, stranger, None, 5, nonce=0))[2:]))
    dear = "0x" + replace(old, max_fee=ETHER // 2 // 21_000).payload().hex()
    with pytest.raises(Refused, match="which no transfer costs"):
        chain.payer.renew(dear, "normal", key.address)
    with pytest.raises(InsufficientFunds):
        chain.payer.renew("0x" + old.payload().hex(), "normal", Key().address)
    # A payment that would fail by now is replaced all the same, with the gas that it had: its nonce has to be used.
    everything = "0x" + replace(old, to=bytes.fromhex(chain.usdc[2:]), data=b"", value=5, gas=50_000).payload().hex()
    assert decode_payload(bytes.fromhex(chain.payer.renew(everything, "normal", key.address)[2:])).gas == 50_000


def test_nothing_to_pay_with_is_refused(chain: Chain, stranger: str) -> None:
    empty, some = Key(), chain.funded(wei=10**12)
    with pytest.raises(Refused, match=r"(?i)insufficient"):
        chain.payer.prepare(Payment(empty.address, stranger, None, 5, nonce=0))
    # The amount is there and the fee is not.
    with pytest.raises(Refused, match=r"(?i)insufficient"):
        chain.payer.estimate(Payment(some.address, stranger, None, 10**12, nonce=0))
    with pytest.raises(Refused, match="exceeds balance"):
        chain.payer.prepare(Payment(chain.funded(usdc=4).address, stranger, chain.usdc, 5, nonce=0))
    # Signed in better days.
    key = chain.funded(wei=ETHER)
    done = signed(chain, key, Payment(key.address, stranger, None, ETHER // 2, nonce=0))
    chain.rpc.call("anvil_setBalance", [key.address, hex(5)])
    with pytest.raises(Refused, match=r"(?i)insufficient funds"):
        chain.payer.broadcast(done.raw)


def test_what_would_revert_is_refused_with_the_contracts_words(chain: Chain, stranger: str) -> None:
    key = chain.funded(usdt=100)
    payment = Payment(key.address, stranger, chain.usdt, 50, nonce=0)
    send(chain.rpc, chain.usdt, call_data("addBlackList(address)", key.address))
    for ask in (chain.payer.estimate, chain.payer.prepare):
        with pytest.raises(Refused, match="sender is blacklisted"):
            ask(payment)
    send(chain.rpc, chain.usdt, call_data("removeBlackList(address)", key.address))
    assert chain.payer.prepare(payment)
    # A token contract takes no coins.
    with pytest.raises(Refused, match="revert"):
        chain.payer.prepare(Payment(key.address, chain.usdc, None, 5, nonce=0))


def test_a_token_that_answers_false_is_refused(chain: Chain, stranger: str) -> None:
    token = deploy(chain.rpc, "OldToken", b"OLD", "Answers false", 6)
    key = chain.funded()
    with pytest.raises(Refused, match="true"):
        chain.payer.prepare(Payment(key.address, stranger, token, 5, nonce=0))
    send_token(chain.rpc, token, key.address, 5)
    assert chain.payer.explain(chain.payer.prepare(Payment(key.address, stranger, token, 5, nonce=0))).contract == token


def test_a_token_that_is_not_there_is_refused(chain: Chain, stranger: str) -> None:
    """Calling an address without code succeeds, returns nothing, and moves nothing."""
    with pytest.raises(Refused, match="no token contract"):
        chain.payer.prepare(Payment(chain.funded().address, stranger, Key().address, 5, nonce=0))


def test_a_recipient_that_is_a_contract_gets_more_gas(chain: Chain) -> None:
    relay = deploy(chain.rpc, "Relay")
    key = chain.funded(wei=ETHER)
    done = signed(chain, key, Payment(key.address, relay, None, 5, nonce=0))
    chain.payer.broadcast(done.raw)
    assert mined(chain.rpc, done.txid)["status"] == "0x1"
    assert int(chain.rpc.call("eth_getTransactionByHash", [done.txid])["gas"], 16) > 21_000


def test_a_recipient_that_fails_only_when_it_is_not_simulated_is_refused(chain: Chain) -> None:
    """It looks at the price of gas, of which a simulation has none unless it is told one."""
    code = "3a15600657fe5b60015f5500"  # GASPRICE ISZERO PUSH1 6 JUMPI INVALID JUMPDEST SSTORE(0, 1) STOP
    made = mined(chain.rpc, tokens.send(chain.rpc, None, data=f"0x600c600c600039600c6000f3{code}"))
    key = chain.funded(wei=ETHER)
    with pytest.raises(Refused):
        chain.payer.prepare(Payment(key.address, made["contractAddress"], None, 1, 0))


def test_the_networks_gas_limit_is_a_floor(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    payment = Payment(key.address, stranger, None, 5, nonce=0)
    more = EvmPayer(replace(chain.network, gas_limit=60_000), chain.rpc)
    assert more.estimate(payment).fee * 21 == chain.payer.estimate(payment).fee * 60


def test_a_node_of_another_chain_gets_nothing(chain: Chain, stranger: str) -> None:
    bsc = EvmPayer(next(network for network in default_networks("live") if network.slug == "bsc"), chain.rpc)
    key = chain.funded(wei=ETHER)
    payment = Payment(key.address, stranger, None, 5, nonce=0)
    with pytest.raises(Unavailable, match="another chain"):
        bsc.prepare(payment)
    unsigned = chain.payer.prepare(payment)
    for refusing in (bsc.explain, bsc.digest):
        with pytest.raises(ValueError, match="chain 1, not 56"):
            refusing(unsigned)
    with pytest.raises(ValueError, match="chain 1, not 56"):
        bsc.assemble(unsigned, key.sign(chain.payer.digest(unsigned)))


def test_what_a_node_of_another_chain_refuses_is_not_refused(chain: Chain) -> None:
    """It would give the money back, although nobody has asked the right chain."""
    bsc = EvmPayer(next(network for network in default_networks("live") if network.slug == "bsc"), chain.rpc)
    empty = Payment(Key().address, chain.usdc, chain.usdt, 5, nonce=0)
    for gas in ("any", "bounded"):
        with pytest.raises(Refused):
            chain.payer.prepare(replace(empty, gas=gas))
        with pytest.raises(Unavailable, match="another chain"):
            bsc.prepare(replace(empty, gas=gas))


def test_a_node_without_the_method_for_tips_is_asked_for_its_gas_price(chain: Chain, stranger: str) -> None:
    class Older(JsonRpc):
        def call(self, method: str, params: Sequence[Any] = ()) -> Any:
            if method == "eth_maxPriorityFeePerGas":
                raise RpcError(-32601, "the method eth_maxPriorityFeePerGas does not exist/is not available")
            return super().call(method, params)

        def batch(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
            return [self.call(method, params) for method, params in requests]

    key = chain.funded(wei=ETHER)
    for older in (Older(chain.node.url), Providers([Node(Older(chain.node.url), Health(n)) for n in (1, 2)])):
        payer = EvmPayer(chain.network, older)
        unsigned = payer.prepare(Payment(key.address, stranger, None, 5, nonce=0))
        tip = decode_payload(bytes.fromhex(unsigned[2:])).tip
        price, head = chain.rpc.batch([("eth_gasPrice", []), ("eth_getBlockByNumber", ["latest", False])])
        assert tip == int(price, 16) - int(head["baseFeePerGas"], 16)
        again = decode_payload(bytes.fromhex(payer.renew(unsigned, "normal", key.address)[2:]))
        assert again.tip is not None and tip is not None and again.tip > tip


def test_a_fee_that_no_transfer_costs_is_not_believed(chain: Chain, stranger: str) -> None:
    class Dear(JsonRpc):
        def batch(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
            told = zip(requests, super().batch(requests), strict=True)
            return [hex(10**15) if method == "eth_maxPriorityFeePerGas" else answer for (method, _), answer in told]

    key = chain.funded(wei=100 * ETHER)
    with pytest.raises(Unavailable, match="no transfer costs"):
        EvmPayer(chain.network, Dear(chain.node.url)).prepare(Payment(key.address, stranger, None, 5, nonce=0))


def test_the_signature_must_fit(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    unsigned = chain.payer.prepare(Payment(key.address, stranger, None, 5, nonce=0))
    right = key.sign(chain.payer.digest(unsigned))
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    for wrong in (
        replace(right, s=order - right.s),
        replace(right, s=0),
        replace(right, r=0),
        replace(right, r=order),
        replace(right, parity=2),
    ):
        with pytest.raises(ValueError, match="signature"):
            chain.payer.assemble(unsigned, wrong)
    # The other parity is another account's signature: the caller can tell by `signer`.
    other = replace(right, parity=1 - right.parity)
    assert chain.payer.signer(unsigned, other) != key.address


class Losing(JsonRpc):
    """Hands the transaction to the node, and loses the answer or replaces it."""

    def __init__(self, url: str, instead: Exception) -> None:
        super().__init__(url)
        self._instead = instead

    def call(self, method: str, params: Sequence[Any] = ()) -> Any:
        answer = super().call(method, params)
        if method == "eth_sendRawTransaction":
            raise self._instead
        return answer


def test_a_lost_answer_is_unavailable_and_the_payment_arrives_once(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    done = signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0))
    with pytest.raises(Unavailable):
        EvmPayer(chain.network, Losing(chain.node.url, Unavailable("the connection broke"))).broadcast(done.raw)
    chain.payer.broadcast(done.raw)
    mined(chain.rpc, done.txid)
    assert chain.reader.balance(stranger) == 5


@pytest.mark.parametrize("words", ["already known", "nonce too low", "replacement transaction underpriced", "internal error"])
def test_an_error_about_a_transaction_that_the_node_has_is_success(chain: Chain, stranger: str, words: str) -> None:
    key = chain.funded(wei=ETHER)
    done = signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0))
    EvmPayer(chain.network, Losing(chain.node.url, RpcError(-32000, words))).broadcast(done.raw)
    mined(chain.rpc, done.txid)
    assert chain.reader.balance(stranger) == 5


def test_an_unknown_error_about_an_unknown_transaction_decides_nothing(chain: Chain, stranger: str) -> None:
    class Broken(JsonRpc):
        def call(self, method: str, params: Sequence[Any] = ()) -> Any:
            if method == "eth_sendRawTransaction":
                raise RpcError(-32603, "internal error")
            return super().call(method, params)

    key = chain.funded(wei=ETHER)
    done = signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0))
    with pytest.raises(Unavailable, match="internal error"):
        EvmPayer(chain.network, Broken(chain.node.url)).broadcast(done.raw)
    chain.payer.broadcast(done.raw)


def test_nonce_counts_blocks_and_not_the_mempool(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    chain.rpc.call("evm_setAutomine", [False])
    try:
        chain.payer.broadcast(signed(chain, key, Payment(key.address, stranger, None, 5, nonce=0)).raw)
        chain.payer.broadcast(signed(chain, key, Payment(key.address, stranger, None, 6, nonce=1)).raw)
        assert chain.payer.next_nonce(key.address) == 0
        mine(chain.rpc)
    finally:
        chain.rpc.call("evm_setAutomine", [True])
    assert chain.payer.next_nonce(key.address) == 2
    assert chain.reader.balance(stranger) == 11


def test_payments_that_make_no_sense(chain: Chain, stranger: str) -> None:
    key = chain.funded(wei=ETHER)
    for wrong in (
        Payment(key.address, stranger, None, 0, nonce=0),
        Payment(key.address, stranger, None, -1, nonce=0),
        Payment(key.address, stranger, None, 5, nonce=-1),
        Payment(key.address, stranger[:-1], None, 5, nonce=0),
        Payment(key.address, stranger, chain.usdc, 2**256, nonce=0),
    ):
        with pytest.raises(ValueError, match=r"payment|address|amount"):
            chain.payer.prepare(wrong)


def test_sending_from_the_dev_account_pays_strangers(chain: Chain, stranger: str) -> None:
    """The helper that other tests and the local stack use."""
    send_native(chain.rpc, stranger, 7)
    txid = tokens.send_token(chain.rpc, chain.usdt, stranger, 8)
    assert mined(chain.rpc, txid)["status"] == "0x1"
    assert (chain.reader.balance(stranger), chain.reader.balance(stranger, chain.usdt)) == (7, 8)


def test_a_recipient_that_computes_at_the_wallets_expense_is_refused(chain: Chain) -> None:
    """A contract that turns round 10,000 times when it is paid: PUSH2 10000, JUMPDEST, subtract 1, JUMPI; then STOP."""
    runtime = "6127105b600190038060035700"
    # PUSH1 13, PUSH1 12, PUSH1 0, CODECOPY, PUSH1 13, PUSH1 0, RETURN: the runtime that follows it becomes the contract.
    contract = mined(chain.rpc, tokens.send(chain.rpc, None, data="0x600d600c600039600d6000f3" + runtime))["contractAddress"]
    assert chain.rpc.call("eth_getCode", [contract, "latest"]) == "0x" + runtime
    key = chain.funded(wei=ETHER)
    payment = Payment(key.address, contract, None, 1000, nonce=0)
    for ask in (chain.payer.estimate, chain.payer.prepare):
        with pytest.raises(Refused, match="computes at the wallet's expense"):
            ask(payment)
