"""A store that was lost, restored from the seed and real chains: an EVM node, Litecoin Core, Tron."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chalicelib import wiring
from chalicelib.chains.evm import usage as evm_usage
from chalicelib.chains.evm.reader import EvmReader
from chalicelib.chains.rpc import JsonRpc, RpcError
from chalicelib.domain.addresses.addresses import Address, Watched
from chalicelib.domain.ids import MerchantId, TenantId, tenant_id
from chalicelib.domain.recovery.addresses import Restore
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.reconciliation.audit import audit
from chalicelib.usecases.recovery import addresses as restoring
from chalicelib.wiring import services
from infra.bootstrap import NodeInfo
from infra.local.aws import LocalAws
from infra.local.nodes import Litecoin, mine
from infra.local.tron.process import TronNode
from tests.nodes.conftest import Chain
from tests.nodes.grounds import CHAINS
from tests.nodes.sending import send_native, send_token
from tests.support.stack import Stack, first_stack

pytestmark = pytest.mark.nodes

OWNER = tenant_id(MerchantId("mch_restored"), "live")
ETHER = 10**18


@contextmanager
def opened(aws: LocalAws, slug: str, info: NodeInfo) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIVE_CHAINS", CHAINS)
        wiring.forget()
        yield first_stack(aws, {slug: info})
    wiring.forget()


def given_out(slug: str, *indexes: int) -> list[str]:
    """The addresses of these indexes, as if merchants had been given them; the store knows nothing of it."""
    return [services().deriver.derive("live", slug, index)[0] for index in indexes]


def search(slug: str, gap: int, margin: int, from_block: int | None = None) -> Restore:
    restorer = services().restorer(services().catalogue("live").networks[slug], OWNER)
    return list(restorer.steps(restorer.begin(gap, margin, from_block)))[-1]


def listed() -> dict[str, str]:
    found = [row for row in services().store.every(Address) if row.tenant == OWNER and not row.archived]
    return {row.address: row.metadata["restored"] for row in found}


def rescan(stack: Stack, slug: str, first: int) -> None:
    """Everything since `first` is looked at again, by the polls."""
    from chalicelib.domain.chain import Cursor

    network = services().catalogue("live").networks[slug]
    stack.drain(only=(f"poll_{slug}",), rounds=6)
    cursor = services().store.get(Cursor, network=network.id)
    assert cursor is not None
    services().rescans.order(network, first, cursor.number)
    stack.drain(only=(f"poll_{slug}",), rounds=12)


def units(tenant: TenantId, slug: str) -> dict[str, int]:
    from chalicelib.domain.ledger import Balance

    found = services().store.page(Balance, limit=100, tenant=tenant).items
    return {row.asset.removeprefix(f"live:{slug}:"): row.available for row in found if row.asset.startswith(f"live:{slug}:")}


def test_evm_balances_tokens_and_what_was_emptied(aws: LocalAws, chain: Chain) -> None:
    info = NodeInfo(chain.node.url, {"usdt": chain.usdt, "usdc": chain.usdc})
    before = chain.reader.tip()
    with opened(aws, "ethereum", info) as stack:
        coins, token, emptied, far, unpaid = given_out("ethereum", 0, 3, 7, 210, 211)
        send_native(chain.rpc, coins, 2 * ETHER)
        send_token(chain.rpc, chain.usdt, token, 5_000_000)
        send_token(chain.rpc, chain.usdc, far, 9_000_000)
        chain.rpc.call("anvil_setNonce", [emptied, "0x2"])  # it was swept
        done = search("ethereum", gap=220, margin=20)
        assert (done.found, done.holding, done.highest, done.watched) == (4, 3, 210, 231)
        assert listed() == {coins: "holding", token: "holding", emptied: "emptied", far: "holding"}
        mine(chain.rpc, 20)
        rescan(stack, "ethereum", before + 1)
        assert units(OWNER, "ethereum") == {"eth": 2 * ETHER, "usdt": 5_000_000, "usdc": 9_000_000}
        # Given out and never paid before the loss: it is watched.
        send_native(chain.rpc, unpaid, ETHER)
        mine(chain.rpc, 20)
        stack.drain(only=("poll_ethereum",), rounds=6)
        assert units(OWNER, "ethereum")["eth"] == 3 * ETHER
        assert audit(services().store) == []


def test_balances_of_many_are_those_of_each(chain: Chain, stranger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rich = chain.funded(wei=0, usdt=12_345_678, usdc=7)
    others = ["0x" + format(n, "040x") for n in range(1 << 100, (1 << 100) + 600)]
    asked = [*others[:500], rich.address, *others[500:], stranger]
    told = chain.reader.usage(asked, [chain.usdt, chain.usdc, stranger])
    assert [at for at, each in enumerate(told) if each != "unused"] == [500]
    assert told[500] == "holding"
    program = chain.rpc.call("eth_call", [{"data": evm_usage.token_balances(chain.usdt, [stranger, rich.address])}, "latest"])
    assert program == "0x" + format(0, "064x") + format(12_345_678, "064x")
    # A contract that is none of the kind fails loudly: nobody is "unused" because a call went wrong.
    not_a_token = send_code(chain)
    with pytest.raises(Unavailable):
        chain.reader.usage(asked[:2], [not_a_token])

    class Simple(JsonRpc):
        """A node that runs no programs."""

        def call(self, method: str, params: object = ()) -> object:
            if method == "eth_call" and "to" not in params[0]:  # type: ignore[index]
                raise RpcError(-32000, "contract creation is not allowed here")
            return super().call(method, params)  # type: ignore[arg-type]

    one_by_one = EvmReader(chain.network, Simple(chain.node.url))
    assert one_by_one.usage(asked[495:505], [chain.usdt]) == told[495:505]


def send_code(chain: Chain) -> str:
    """A contract that reverts whatever it is asked."""
    from infra.local.nodes import mined

    code = "0x6460006000fd6000526005601bf3"
    sent = chain.rpc.call("eth_sendTransaction", [{"from": chain.dev, "data": code}])
    return str(mined(chain.rpc, sent)["contractAddress"])


def test_litecoin_by_its_blocks(aws: LocalAws, litecoin: Litecoin, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(aws, "litecoin", NodeInfo(litecoin.url)) as stack:
        late, early, far = given_out("litecoin", 0, 2, 150)
        first = services().reader(services().catalogue("live").networks["litecoin"]).tip() + 1
        # In one block, and the farthest one first: what is found in a block widens what the same block is searched for.
        litecoin.send(far, 3 * 10**8)
        litecoin.send(early, 2 * 10**8)
        litecoin.mine(12)
        litecoin.send(late, 10**8)
        litecoin.mine(7)
        restorer = services().restorer(services().catalogue("live").networks["litecoin"], OWNER)
        steps = restorer.steps(restorer.begin(148, 10, first))
        next(steps)  # then the machine goes down
        assert set(listed()) == {far, early}
        wiring.forget()
        done = search("litecoin", gap=1, margin=1)  # goes on as it was begun
        assert (done.highest, done.found, done.watched, done.first_block) == (150, 3, 161, first)
        assert listed() == dict.fromkeys((late, early, far), "used")
        assert len([row for row in services().store.every(Watched) if row.tenant == OWNER]) == 161
        rescan(stack, "litecoin", first)
        assert units(OWNER, "litecoin") == {"ltc": 6 * 10**8}
        assert audit(services().store) == []


def test_tron_accounts_and_tokens_without_one(aws: LocalAws, tron_node: TronNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "WINDOW", 40)
    with opened(aws, "tron", NodeInfo(tron_node.url)):
        coins, tokens = given_out("tron", 1, 60)
        tron_node.faucet(coins, 5)
        tron_node.faucet(tokens, 3, "USDT")
        done = search("tron", gap=70, margin=5)
        assert (done.found, done.holding, done.highest) == (2, 2, 60)
        assert listed() == {coins: "holding", tokens: "holding"}
