"""The shop of the bundles, whose deposits are collected and whose UTXOs are consolidated."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from chalicelib.domain.addresses.addresses import Wallet, Watched
from chalicelib.domain.ids import NetworkId, asset_id
from chalicelib.domain.ledger import WalletBalance
from chalicelib.domain.treasury.consolidations import CoinMove
from chalicelib.domain.work import OutboxRow
from chalicelib.usecases.base.clock import in_realm
from chalicelib.usecases.ports.changes import Save
from chalicelib.usecases.ports.failures import Unavailable
from chalicelib.usecases.ports.signing import Signature
from chalicelib.usecases.wallets.lookup import retired_wallets
from chalicelib.wiring import services
from tests.support.bundles import COIN, NETWORK, REORG, Shop

LTC = asset_id(NETWORK, "ltc")
COLD = "ltc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qmu8tk5"


class Treasury(Shop):
    """The shop of the bundles, whose coin is collected, with `deposits` of half a coin each on addresses of their own."""

    def settle_for(self, **settings: str | bool) -> None:
        store = services().store
        coin = store.catalogue("live", fresh=True).native("litecoin")
        store.commit([Save(replace(coin, settings={**coin.settings, **settings}, version=coin.version + 1))])
        store.forget_catalogue()

    def receive(self, *amounts: int) -> list[str]:
        """Deposits that are confirmed and hinted at; their addresses."""
        addresses = [self.post("/v1/invoices", currency="ltc", amount="1", network="litecoin")["address"] for _ in amounts]
        for address, amount in zip(addresses, amounts, strict=True):
            self.chain.pay(address, amount)
        self.confirm()
        return addresses

    def run(self) -> None:
        """A poll, what it asks for, and everybody who waits is paid."""
        super().run()
        self.hint()
        self.sign()

    def hint(self) -> None:
        """What the outbox says of hints."""
        for row in services().store.every(OutboxRow):
            if any(command.queue == "collectable" for command in row.commands):
                services().relay.tell(row.id)

    def sign(self) -> None:
        for move in self.moves():
            wired = services().deposit_coin_moves if move.wallet is None else services().wallet_coin_moves
            if move.state in ("built", "signed"):
                with contextlib.suppress(Unavailable), in_realm("live"):
                    wired.advance(NETWORK, move.id)

    def plan_only(self) -> CoinMove:
        """The same, not signed."""
        self.later(6)
        network = services().catalogue("live").networks["litecoin"]
        services().coin_move_planning(network).look(services().finality(network).scanned())
        return self.moves()[-1]

    def step(self) -> None:
        """Plan, sign and send, without the rest of a poll."""
        network = services().catalogue("live").networks["litecoin"]
        services().coin_move_planning(network).look(services().finality(network).scanned())
        self.sign()

    def look_cold(self) -> None:
        services().cold_coins(services().catalogue("live").networks["litecoin"]).look()

    def drain_old(self) -> None:
        network = services().catalogue("live").networks["litecoin"]
        for old in retired_wallets(services().store, network.id):
            services().cold_coins(network).drain(old.wallet)

    def deepen(self) -> None:
        """No reorganisation reaches what is there now."""
        for _ in range(2):
            self.confirm(REORG // 2)
        self.run()

    def moves(self) -> list[CoinMove]:
        return sorted(services().store.every(CoinMove), key=lambda move: move.id)

    def booked(self, address: str) -> int:
        found = services().store.get(WalletBalance, network=NETWORK, address=address, asset=LTC)
        return 0 if found is None else found.units

    def hints(self) -> int:
        return len([work for work in services().store.every_work() if work.kind == "collectable"])

    def plan(self) -> CoinMove:
        """The consolidation that is planned when fees are looked at next."""
        self.later(6)
        self.run()
        return self.moves()[-1]


def bundled(treasury: Treasury) -> None:
    """Two withdrawals that one transaction pays."""
    treasury.settle_for(collectThreshold="0")
    treasury.withdraw("1", 0)
    treasury.withdraw("2", 1)


def consolidated(treasury: Treasury) -> None:
    """Nine deposits, which a poll plans to bring to the hot wallet once fees are looked at again."""
    treasury.later(6)


def cooled(treasury: Treasury) -> None:
    """What the hot wallet has above its ceiling goes to the cold wallet."""
    cold = Wallet(NETWORK, "cold", COLD, "none", "", "", 1)
    services().store.commit([Save(cold), Save(Watched("live", "litecoin", COLD, "cold", ("litecoin",)))])
    treasury.settle_for(collectThreshold="100", hotCeiling="6", collectServiceToColdThreshold="1")


KINDS = {each.__name__: each for each in (bundled, consolidated, cooled)}

TOTAL = sum(COIN // 2 + n for n in range(9))


class DigestKeys:
    """The seed's keys: sign by repeating what is to be signed."""

    @contextmanager
    def opened(self) -> Iterator[DigestKeys]:
        yield self

    def sign_as(self, network: NetworkId, address: str, path: str, digest: bytes) -> Signature:
        assert path.startswith("m/84'/2'/0'/0/")
        return Signature(int.from_bytes(digest), 1, 0)
