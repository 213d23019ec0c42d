"""Every entry point of the deployed service and nothing else: the REST API, the clocks, the queues' consumers.

A function here may only hand over. What it hands over to is imported inside it, so that the API's Lambda never loads
the chains' libraries. The local stack calls these same functions.

Two kinds of consumers. Those of `workers/batches.py` get up to ten messages, handle each by itself, and answer which failed: the
good ones are never delivered again. Chalice can not set ReportBatchItemFailures, which makes Lambda heed the answer: the operator's
commands `deploy` and `mappings` do. Consumers of FIFO queues, and those that share out little on purpose, get one
message at a time: what raises is exactly what comes back.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html

All functions of an account and region share 1,000 concurrent executions, the API's among them, unless AWS has raised that quota. A
backlog must leave it its part: `maximum_concurrency` bounds what a queue takes, and what it does not take stays in the queue.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
"""

from __future__ import annotations

import gc
from typing import Any

from chalice.app import Chalice, CloudWatchEvent, Rate, SQSEvent

from chalicelib.api import register
from chalicelib.settings import APP, Settings

# A start makes 60,000 objects that all stay. To look for garbage after every 700, as Python does unless told otherwise, is a tenth
# of a cold start. What is no cycle is freed at once, as ever. https://docs.python.org/3/library/gc.html#gc.set_threshold
gc.set_threshold(100_000)

_settings = Settings.from_environment()
_EVERY_MINUTE = Rate(1, unit=Rate.MINUTES)

app = Chalice(app_name=APP)
register(app)


def _poll(network: str) -> None:
    from chalicelib.workers import poll

    poll.run(network)


@app.schedule(_EVERY_MINUTE)
def poll_bitcoin(event: CloudWatchEvent) -> None:
    _poll("bitcoin")


@app.schedule(_EVERY_MINUTE)
def poll_ethereum(event: CloudWatchEvent) -> None:
    _poll("ethereum")


@app.schedule(_EVERY_MINUTE)
def poll_tron(event: CloudWatchEvent) -> None:
    _poll("tron")


@app.schedule(_EVERY_MINUTE)
def poll_bsc(event: CloudWatchEvent) -> None:
    _poll("bsc")


@app.schedule(_EVERY_MINUTE)
def poll_polygon(event: CloudWatchEvent) -> None:
    _poll("polygon")


@app.schedule(_EVERY_MINUTE)
def poll_arbitrum(event: CloudWatchEvent) -> None:
    _poll("arbitrum")


@app.schedule(_EVERY_MINUTE)
def poll_fantom(event: CloudWatchEvent) -> None:
    _poll("fantom")


@app.schedule(_EVERY_MINUTE)
def poll_litecoin(event: CloudWatchEvent) -> None:
    _poll("litecoin")


@app.schedule(_EVERY_MINUTE)
def housekeeping(event: CloudWatchEvent) -> None:
    """Whatever should have happened by now and has not: untold outbox rows, due webhooks, unfinished payouts."""
    from chalicelib.workers import housekeeping as worker

    worker.run()


@app.schedule(_EVERY_MINUTE)
def rates(event: CloudWatchEvent) -> None:
    """What the live realm's coins are worth."""
    from chalicelib.workers import rates as worker

    worker.run()


@app.schedule(Rate(5, unit=Rate.MINUTES))
def reconciliation(event: CloudWatchEvent) -> None:
    """Whether the chains hold what the ledger says, once a day or when an operator asks: `compare` goes on until that is done."""
    from chalicelib.workers import reconciliation as worker

    worker.run()


@app.schedule(Rate(5, unit=Rate.MINUTES))
def archive(event: CloudWatchEvent) -> None:
    """Old settled payments leave the tables for the archive, where it is on."""
    from chalicelib.workers import archive as worker

    worker.run()


if _settings.stage == "demo":

    @app.schedule(Rate(1, unit=Rate.HOURS))
    def demo_reset(event: CloudWatchEvent) -> None:
        """Put the demo's data back, once a day; every hour it is looked whether that is due, or was not finished."""
        from chalicelib.workers import demo

        demo.run()


@app.on_sqs_message(queue=_settings.queue("relay"), batch_size=10, maximum_concurrency=100)
def relay(event: SQSEvent) -> dict[str, Any]:
    """Outbox rows want to be told. A tenth of the account's 1,000 at most, as webhooks: it asks the store and waits for nobody."""
    from chalicelib.workers import batches
    from chalicelib.workers import relay as worker

    return batches.run(event, worker.handle)


def _deliver(event: SQSEvent) -> dict[str, Any]:
    from chalicelib.workers import batches
    from chalicelib.workers import deliver as worker

    return batches.run(event, worker.handle)


@app.on_sqs_message(queue=_settings.queue("deliveries"), batch_size=10, maximum_concurrency=100)
def deliver(event: SQSEvent) -> dict[str, Any]:
    """Webhooks are due. A tenth of the account's 1,000 at most: a thousand messages at once, and the API has room."""
    return _deliver(event)


@app.on_sqs_message(queue=_settings.queue("deliveries-slow"), batch_size=10, maximum_concurrency=20)
def deliver_slow(event: SQSEvent) -> dict[str, Any]:
    """Webhooks are due at endpoints that fail: most of their time is waiting for what does not answer.

    They have few functions, and those of their own, so that they can take none from endpoints that are well.
    """
    return _deliver(event)


@app.on_sqs_message(queue=_settings.queue("scans"), batch_size=1, maximum_concurrency=4)
def scan_range(event: SQSEvent) -> dict[str, Any]:
    """Blocks of a backlog want to be scanned. Four at a time: nodes have limits, and polls ask them too.

    One message each, since a range is seconds of work that uses the processor: of ten at once in one function none would end in
    its time, and ten messages at once would ask a node for ten ranges where four are meant.
    """
    from chalicelib.workers import batches
    from chalicelib.workers import scan_range as worker

    return batches.run(event, worker.handle)


@app.on_sqs_message(queue=_settings.queue("ticks"), batch_size=1, maximum_concurrency=20)
def tick(event: SQSEvent) -> dict[str, Any]:
    """A busy network wants to be looked at. One for each of sixteen networks, and a few that find another one at work.

    One message each: a tick is worth nothing five seconds later, and those of other networks must not wait for it.
    """
    from chalicelib.workers import batches
    from chalicelib.workers import tick as worker

    return batches.run(event, worker.handle)


@app.on_sqs_message(queue=_settings.queue("record"), batch_size=1, maximum_concurrency=8)
def record(event: SQSEvent) -> dict[str, Any]:
    """A crowded block's payments want to be recorded, or credited, beside its poll. Eight at a time: each reads the block."""
    from chalicelib.workers import batches
    from chalicelib.workers import record as worker

    return batches.run(event, worker.handle)


@app.on_sqs_message(queue=_settings.queue("comparisons"), batch_size=1, maximum_concurrency=16)
def compare(event: SQSEvent) -> dict[str, Any]:
    """A network wants to be compared with the ledger. Sixteen at a time: the eight networks of two realms.

    One message each: a network's run takes all of the function's time while it is open.
    """
    from chalicelib.workers import batches
    from chalicelib.workers import compare as worker

    return batches.run(event, worker.handle)


@app.on_sqs_message(queue=_settings.queue("payouts.fifo"), batch_size=1, maximum_concurrency=20)
def payout(event: SQSEvent) -> None:
    """A payment wants to be built, signed, sent or settled. One at a time per hot wallet: the queue groups by wallet. Sixteen
    networks have one each, and more where slots are added.

    One message each: a batch of a FIFO queue may hold several of one wallet, whose order only a function that handles them one
    after the other keeps, and one that failed would have to fail all behind it. A wallet's payments gain nothing by that.
    """
    from chalicelib.workers import batches
    from chalicelib.workers import payout as worker

    batches.one_by_one(event, worker.handle)


@app.on_sqs_message(queue=_settings.queue("collections.fifo"), batch_size=1, maximum_concurrency=8)
def collect(event: SQSEvent) -> None:
    """Coins want to leave a deposit address: what alone opens the seed. One at a time per address: the queue groups by it. Eight
    addresses at once: each asks nodes, which have limits.

    One message each, as with payments; and the seed is open for one address at a time.
    """
    from chalicelib.workers import batches
    from chalicelib.workers import collect as worker

    batches.one_by_one(event, worker.handle)
