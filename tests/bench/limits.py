"""What gives way first at 1, 10 and 100 million invoices a day: for each limit what an invoice takes of it, what there is, and
whose word that is. Demands are measured: request units by costs.md (steps.py), payments a second by bench_throughput.py.
What can wait for a quieter hour is compared by its mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chalicelib.domain.addresses.addresses import MOST_SLOTS
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.treasury.hot_utxos import MOST_INPUTS
from chalicelib.usecases.ports.changes import FEW_ITEMS
from chalicelib.usecases.treasury.collection import run as collection
from chalicelib.usecases.treasury.consolidation import planning as consolidation
from chalicelib.web.files import needed
from tests.bench.costs import TABLE, Cost, parsed
from tests.bench.latencies import NODE, READ, SIGN, commit

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "chalicelib" / "web" / "static" / "checkout" / "checkout.js"


def stated(text: str, shape: str) -> float:
    """The number that `shape` finds in a source. Raises ValueError."""
    found = re.findall(shape, text)
    if len(found) != 1:
        raise ValueError(f"{shape} is found {len(found)} times")
    return float(found[0])


PLANS = ("8 functions", "8 groups")
"""How a block's payments are committed: the column of the model's table, the first that it has."""
VOLUMES = (1_000_000, 10_000_000, 100_000_000)
PEAK = 5.0
"""The busiest second by the mean one: assumed."""
DAY = 86_400.0
BUSIEST_NETWORK, BUSIEST_MERCHANT = 0.5, 0.05
"""Shares of the busiest network, and of the busiest merchant's busiest coin, in all invoices: assumed."""
REQUESTS = 2
"""Requests with a key for each invoice: assumed."""
LIVE = {network.slug: network for network in default_networks("live")}
OPEN_S = 120.0
"""Seconds that a payer has the page open and in front: assumed. A minute to pay with a wallet that is at hand, and one to see that
the payment came; few look on until it is confirmed, and a page in a hidden tab asks nothing."""
ASK_S = stated(SCRIPT.read_text(encoding="utf-8"), r"\bOPEN = (\d+)\b") / 1_000
"""Seconds between two asks of the page while something may still come."""
ASKS = OPEN_S / ASK_S + 1 + OPEN_S / LIVE["ethereum"].block_time
"""How often the invoice is read for its payer: asks for its state, the page, and the page anew when an ask found news, at most
with each block as on ethereum."""
FILES = len(needed("checkout/checkout.js", "checkout/wallets.js")) + 2
"""Modules, styles and icon of the page, which a browser that has seen none asks for. Assumed of every payer, and the most."""
CHECKOUT = ASKS + FILES
"""Requests without a key for each invoice."""
EVENTS = 5
"""Webhooks of a paid invoice (docs/webhooks.md)."""
NEW_TABLE, TABLE_QUOTA = 4_000.0, 40_000.0
"""Write units a second: a new table on demand takes so many at once, and the quota of a table
(docs.aws.amazon.com/amazondynamodb/latest/developerguide: on-demand-capacity-mode, ServiceQuotas)."""
PARTITION = 1_000.0
"""Write units a second (bp-partition-key-design)."""
GATEWAY = 10_000.0
"""Requests a second of an account and region (docs.aws.amazon.com/apigateway/latest/developerguide/limits.html)."""
RUNNING, SECONDS_OF_A_REQUEST = 1_000.0, 0.05
"""Functions at once of an account (docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html); a request's time: assumed."""
SINGLE, DELIVERED = "200 x 1, 100 ms", "at the function's memory/s"
"""Row and column of the page's table: deliveries of one event to one endpoint each, that one function makes in a second."""
DELIVERERS = stated((ROOT / "app.py").read_text(encoding="utf-8"), r'queue\("deliveries"\),.* maximum_concurrency=(\d+)')
"""Functions of `deliver` at a time."""
LANE_UNITS = 4.0
"""Write units of an invoice in `expiry#<network>`, and of its payment in `deposit#<network>`: opened and closed, each in a
transaction."""
POLL_S = 60.0
"""Seconds between two polls (app.py)."""
PAYOUT = "payout: build, sign and send"
"""The step of costs.md that a hot wallet does, one after the other: its queue has one group for each slot."""
NODE_ROUNDS, TOKEN_ROUNDS, PAYOUT_CPU_MS = (4, 2, 1, 1), 7, 60.0
"""Round trips to the node for one native payment on EVM, one after the other, by how many requests are under way in each; how many
a token's are (counted on anvil, and held, by tests/nodes/test_payout_rounds.py); and its CPU: two readers (bench_signatures.py) and
a millisecond for each call."""
TOPUP = "collect: build, sign and send the fee"
"""The step of costs.md that the wallet `topup` does, one after the other (`usecases/treasury/topups.py`); and its round trips to
the node, counted and held by the same test as a payout's."""
TOPUP_ROUNDS = (1, 1, 1, 1, 1, 1)
SENDING = "costs.md,latencies.py"
WITHDRAWN = 0.1
"""Withdrawals for each invoice: assumed."""
TOPPED_UP = 1.0
"""Top-ups for each invoice: every payment a token on an address of its own, which has no fee (docs/treasury.md, Collection).
Assumed, and the most."""


@dataclass(frozen=True)
class Limit:
    """`demand` of one invoice, `capacity` a second in the same unit; `source`: the constant's."""

    name: str
    demand: float
    capacity: float
    source: str
    young: bool = False
    """Only of tables that are new, and so of the smallest volume."""
    peak: float = PEAK
    """The busiest second by the mean one; 1 for work that may wait for a quieter hour."""

    def used(self, volume: int) -> float:
        """Share of the limit at the peak of so many invoices a day."""
        return volume / DAY * self.peak * self.demand / self.capacity


@dataclass(frozen=True)
class Facts:
    """Measured: write units of a paid invoice by table, payments a second of a network and of a merchant's coin, single deliveries
    of all functions, and payments that go to the archive. Computed: a hot wallet's payouts a second, and top-ups of the wallet
    that pays those."""

    writes: dict[str, float]
    network: float
    merchant: float
    wallet: float
    topups: float
    deliveries: float
    archived: float


def brought_in(most: int, network: Network, moves: int, look_s: float = 0.0) -> float:
    """Deposits a day that come to the hot wallet while so many are under way at a time: `most * 86400 / (moves * (confirmations *
    block time + 60 s) + look_s)`. A move waits for its confirmations, and for the poll that finds them a minute at the most; at the
    end the place waits `look_s` for the next one."""
    return most * DAY / (moves * (network.confirmations * network.block_time + POLL_S) + look_s)


def collected(network: Network) -> float:
    """Of a network of accounts, each with a top-up and a sweep."""
    return brought_in(collection.MOST_UNDER_WAY, network, moves=2)


def consolidated(network: Network) -> float:
    """Of a UTXO network, in full consolidations, which are planned when the coins are looked through."""
    return brought_in(consolidation.MOST_UNDER_WAY * MOST_INPUTS, network, 1, consolidation.LOOK_MS / 1_000)


def rows_of(tables: str) -> dict[str, dict[str, str]]:
    """Of the tables of a section: each row's cells by the words above them."""
    lines = [line.strip("|").split("|") for line in tables.splitlines() if line.startswith("|")]
    found, head = dict[str, dict[str, str]](), list[str]()
    for place, line in enumerate(lines):
        if place + 1 < len(lines) and set(lines[place + 1][0]) == {"-"}:
            head = line
        elif set(line[0]) != {"-"}:
            found[line[0]] = dict(zip(head, line, strict=True))
    return found


def paid_invoice(costs: dict[str, Cost]) -> dict[str, float]:
    """Write units by table, with an endpoint that takes every event. Of a poll, what an empty block takes as well is left out."""
    total: dict[str, float] = {}
    idle = costs["poll: an empty block"].writes
    for name, cost in costs.items():
        if not name.endswith(", with an endpoint"):
            continue
        for table, units in cost.writes.items():
            once = idle.get(table, 0.0) if name.startswith("poll:") else 0.0
            total[table] = total.get(table, 0.0) + max(0.0, units - once)
    return total


def calls_of_paid_invoice(costs: dict[str, Cost]) -> int:
    """Calls of AWS of the same steps, of a poll again what is above an empty block's."""
    idle, total = sum(costs["poll: an empty block"].calls.values()), 0
    for name, cost in costs.items():
        if name.endswith(", with an endpoint"):
            total += max(0, sum(cost.calls.values()) - (idle if name.startswith("poll:") else 0))
    return total


def sent_a_second(cost: Cost, rounds: tuple[int, ...]) -> float:
    """Payments of one wallet: its calls one after the other, at the mean waits of latencies.py. `rounds`: of each round trip to the
    node, which takes its slowest request's time, the requests that are under way together."""
    kinds = {"TransactWriteItems": commit(FEW_ITEMS), "Sign": SIGN}
    waits = sum(count * kinds.get(name, READ).mean for name, count in cost.calls.items()) + sum(map(NODE.slowest, rounds))
    return 1_000 / (waits + PAYOUT_CPU_MS)


def facts(throughput: str, deliveries: str, archive: str) -> Facts:
    """From the page's tables of these names and from costs.md; the archive has one function, whose rate is one merchant's or
    many's. Raises ValueError, KeyError."""
    cases = rows_of(throughput)

    def rate(case: str) -> float:
        (row,) = (row for name, row in cases.items() if name.startswith(case))
        return float(next(row[plan] for plan in PLANS if plan in row).split(";")[0])

    costs = parsed(TABLE.read_text(encoding="utf-8"))
    payouts, topups = sent_a_second(costs[PAYOUT], NODE_ROUNDS), sent_a_second(costs[TOPUP], TOPUP_ROUNDS)
    sent = DELIVERERS * float(rows_of(deliveries)[SINGLE][DELIVERED])
    away = float(rows_of(archive)["archive"]["payments/s"])
    return Facts(paid_invoice(costs), rate("200/s"), rate("50/s"), payouts, topups, sent, away)


def limits(known: Facts) -> list[Limit]:
    """Every limit, the narrowest first."""
    widest = max(known.writes, key=lambda table: known.writes[table])
    units = known.writes[widest]
    found = [
        Limit("a network's payments", BUSIEST_NETWORK, known.network, "bench_throughput"),
        Limit("one merchant's coin", BUSIEST_MERCHANT, known.merchant, "bench_throughput"),
        Limit(f"new table `{widest}`: warm it", units, NEW_TABLE, "on-demand-capacity-mode", young=True),
        Limit(f"quota of `{widest}`", units, TABLE_QUOTA, "ServiceQuotas"),
        Limit("`expiry#`, `deposit#<network>`", LANE_UNITS * BUSIEST_NETWORK, PARTITION, "bp-partition-key-design"),
        Limit("`evt#<tenant>`", known.writes["events"] * BUSIEST_MERCHANT, PARTITION, "bp-partition-key-design"),
        Limit("collections, mean", BUSIEST_NETWORK, collected(LIVE["ethereum"]) / DAY, "Collecting", peak=1.0),
        Limit("consolidations, mean", BUSIEST_NETWORK, consolidated(LIVE["bitcoin"]) / DAY, "Collecting", peak=1.0),
        Limit("archive, mean", 1.0, known.archived, "bench_archive", peak=1.0),
        Limit("requests", REQUESTS + CHECKOUT, GATEWAY, "apigateway/limits"),
        Limit("functions at once", (REQUESTS + CHECKOUT) * SECONDS_OF_A_REQUEST, RUNNING, "gettingstarted-limits"),
        Limit("deliveries", EVENTS, known.deliveries, "bench_deliveries"),
        Limit("one hot wallet's withdrawals", WITHDRAWN * BUSIEST_NETWORK, known.wallet, SENDING),
        Limit(f"{MOST_SLOTS} slots of an EVM wallet", WITHDRAWN * BUSIEST_NETWORK, MOST_SLOTS * known.wallet, SENDING),
        Limit("wallet `topup`, mean", TOPPED_UP * BUSIEST_NETWORK, known.topups, SENDING, peak=1.0),
    ]
    return sorted(found, key=lambda limit: limit.used(1), reverse=True)


def table(known: Facts) -> str:
    """The page's table: the share of each limit at the peak, the first one of each volume in bold."""
    rows = limits(known)
    head = "|".join(f"{volume // 1_000_000}M" for volume in VOLUMES)
    lines = [f"|limit|an invoice|a second|source|{head}|", "|---|---|---|---|" + "---|" * len(VOLUMES)]
    for row in rows:
        shares = []
        for volume in VOLUMES:
            there = [one for one in rows if not one.young or volume == VOLUMES[0]]
            share = f"{row.used(volume):.0%}" if row in there else ""
            shares.append(f"**{share}**" if row is there[0] else share)
        lines.append(f"|{row.name}|{row.demand:g}|{round(row.capacity, 2):g}|{row.source}|{'|'.join(shares)}|")
    return "\n".join(lines)
