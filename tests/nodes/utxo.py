"""Bitcoin's and litecoin's nodes in regtest: their networks, readers and fresh addresses."""

from __future__ import annotations

import os
from dataclasses import replace

from chalicelib.chains.utxo.mempool import UtxoMempool
from chalicelib.chains.utxo.reader import UtxoReader
from chalicelib.domain.catalogue.catalogue import Network, default_networks
from chalicelib.domain.chain import Transfer
from chalicelib.encoding.public_keys import p2wpkh_address, spelling
from infra.local.nodes import UtxoNode


def network_of(node: UtxoNode) -> Network:
    network = next(network for network in default_networks("live") if network.slug == node.slug)
    return replace(network, rpc_url=node.url, status="active")


def reader_of(node: UtxoNode) -> UtxoReader:
    return UtxoReader(network_of(node), node.rpc, "regtest")


def mempool_of(node: UtxoNode) -> UtxoMempool:
    return UtxoMempool(network_of(node), node.rpc, "regtest")


def stranger(node: UtxoNode) -> str:
    return p2wpkh_address(spelling(node.slug, "regtest").segwit, os.urandom(33))


def seen(node: UtxoNode, address: str, since: int) -> list[Transfer]:
    reader = reader_of(node)
    return [t for b in reader.blocks(since + 1, reader.tip(), ()) for t in reader.proven(b, b.transfers) if t.recipient == address]
