"""Rewards of a block to an address of ours, which no transaction pays: an alarm, and no credit.

A coinbase's output (bitcoin, litecoin) can not be spent for 100 blocks, and a reorganisation takes it for good: it can not be mined
again. On EVM networks the fees of a block and the withdrawals of validators (EIP-4895) only change a balance: what came to a
merchant's address is credited when its balance is compared (`internal_transfers`), where the network's node can tell balances.
"""

from __future__ import annotations

import logging
from collections.abc import Container

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.domain.chain import Block

log = logging.getLogger(__name__)


def tell_rewards(network: Network, block: Block, watched: Container[str]) -> None:
    """Alarm about the rewards of `block` to an address that is `watched` (storage form). Again whenever the block is read again."""
    for reward in block.rewards:
        if reward.recipient in watched:
            amount = "so many as it has" if reward.amount is None else str(reward.amount)
            log.error(
                "ALARM %s: %s, %s units, went to %s in block %d: no payment, and not credited by that",
                *(network.id, reward.source, amount, reward.recipient, block.number),
            )
