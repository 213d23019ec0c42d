"""Every entry point of the deployed service and nothing else: the REST API, the clocks, the queues' consumers.

A function here may only hand over. What it hands over to is imported inside it, so that the API's Lambda never loads
the chains' libraries. The local stack calls these same functions.

The queues' consumers take one message at a time: Chalice can not set ReportBatchItemFailures, and without it a failure
returns the whole batch to the queue. With one message a batch, what raises is exactly what comes back.
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

from chalice.app import Chalice, CloudWatchEvent, Rate, SQSEvent

from chalicelib.api import register
from chalicelib.settings import APP, Settings

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
    """Whatever should have happened by now and has not: untold outbox rows, unfinished payouts, due expiries."""
    from chalicelib.workers import housekeeping as worker

    worker.run()


@app.schedule(_EVERY_MINUTE)
def rates(event: CloudWatchEvent) -> None:
    """What the live realm's coins are worth."""
    from chalicelib.workers import rates as worker

    worker.run()


@app.schedule(Rate(5, unit=Rate.MINUTES))
def reconciliation(event: CloudWatchEvent) -> None:
    """Whether the chains hold what the ledger says: once a day, or when an operator asks; here a run goes on until it is done."""
    from chalicelib.workers import reconciliation as worker

    worker.run()


if _settings.stage == "demo":

    @app.schedule(Rate(1, unit=Rate.HOURS))
    def demo_reset(event: CloudWatchEvent) -> None:
        """Put the demo's data back, once a day; every hour it is looked whether that is due, or was not finished."""
        from chalicelib.workers import demo

        demo.run()


@app.on_sqs_message(queue=_settings.queue("relay"), batch_size=1)
def relay(event: SQSEvent) -> None:
    """An outbox row wants to be told."""
    from chalicelib.workers import relay as worker

    for message in event:
        worker.handle(message.body)


@app.on_sqs_message(queue=_settings.queue("deliveries"), batch_size=1)
def deliver(event: SQSEvent) -> None:
    """A webhook is due."""
    from chalicelib.workers import deliver as worker

    for message in event:
        worker.handle(message.body)


@app.on_sqs_message(queue=_settings.queue("scans"), batch_size=1, maximum_concurrency=4)
def scan_range(event: SQSEvent) -> None:
    """Blocks of a backlog want to be scanned. Four at a time: nodes have limits, and polls ask them too."""
    from chalicelib.workers import scan_range as worker

    for message in event:
        worker.handle(message.body)


@app.on_sqs_message(queue=_settings.queue("payouts.fifo"), batch_size=1)
def payout(event: SQSEvent) -> None:
    """A payment wants to be built, signed, sent or settled. One at a time per hot wallet: the queue groups by wallet."""
    from chalicelib.workers import payout as worker

    for message in event:
        worker.handle(message.body)


@app.on_sqs_message(queue=_settings.queue("collections.fifo"), batch_size=1)
def collect(event: SQSEvent) -> None:
    """Coins want to leave a deposit address: what alone opens the seed. One at a time per address: the queue groups by it."""
    from chalicelib.workers import collect as worker

    for message in event:
        worker.handle(message.body)
