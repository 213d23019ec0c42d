"""What the scanner would have met in a block: transactions of somebody else with a nonce of ours."""

from __future__ import annotations

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.transactions.sightings import Seen, Sighting, nonce_subject
from chalicelib.usecases.ports.changes import Save
from chalicelib.wiring import services

RIVAL = "0x" + "f0" * 32


def met_elsewhere(network: Network, address: str, *nonces: int, txid: str = RIVAL, number: int | None = None) -> None:
    """Note that block `number` (the newest) has a transaction of `address` with each of these nonces."""
    wired = services()
    reader = wired.reader(network)
    at = reader.tip() if number is None else number
    seen = Seen(txid, at, reader.block_hash(at) or "")
    for nonce in nonces:
        subject = nonce_subject(wired.rules.storage_form(network.slug, address), nonce)
        before = wired.store.get(Sighting, network=network.id, subject=subject) or Sighting(network.id, subject)
        wired.store.commit([Save(before.noting(seen))])
