"""Real nodes for tests and the local stack: anvil for the EVM networks, Litecoin Core, bcoin for bitcoin; and a test node for Tron.
Beside them DynamoDB Local, for tests of what happens at once.

How each is found, installed and started is in a module of its own; what they have in common, in `keeper`.
"""

from __future__ import annotations

from infra.local.anvil import ANVIL_VERSION, Anvil, find_anvil, mine
from infra.local.bcoin import BCOIN_VERSION, Bcoin, find_bcoin
from infra.local.dynamodb_local import DYNAMODB_VERSION, DynamoDbLocal, find_dynamodb
from infra.local.keeper import NodeMissing
from infra.local.litecoin import Litecoin, find_litecoind
from infra.local.tokens import deploy_token, dev_account, mined, send_native, send_token
from infra.local.tron.process import TronNode
from infra.local.utxo import UtxoNode

__all__ = [
    "ANVIL_VERSION", "BCOIN_VERSION", "DYNAMODB_VERSION", "Anvil", "Bcoin", "DynamoDbLocal", "Litecoin", "NodeMissing", "TronNode",
    "UtxoNode", "deploy_token", "dev_account", "find_anvil", "find_bcoin", "find_dynamodb", "find_litecoind", "mine", "mined",
    "send_native", "send_token",
]  # fmt: skip
