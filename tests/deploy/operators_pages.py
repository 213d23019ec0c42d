"""The commands of docs/deploying.md and docs/operating.md: which run on moto as the pages have them, and where the others run. They
follow the way to the first invoice (first_invoice.py), in this order, on the stage that it leaves.
"""

from __future__ import annotations

import io
import sys
from typing import Any

from tests.deploy.first_invoice import Walk

RUN = {
    "CLI wallet-keys": "[]",
    "CLI network ethereum --rpc-url https://first… --rpc-url https://second… --agreement-usd 1000 --finality-tag finalized "
    "--finality-usd 50000": "ethereum is active",
    "CLI node-secret alchemy --host eth-mainnet.g.alchemy.com": "{secret:gateway-prod-node-alchemy}",
    "CLI node-secret alchemy": "{secret:gateway-prod-node-alchemy}",
    "CLI move-node-secrets ethereum": '"urls_without_a_secret": 2',
    "CLI book-balances SLUG": "ethereum: 0 booked",
    "CLI collect --network ethereum --coin usdt": "set its collectThreshold first",
    "CLI fee-budget MERCHANT --realm live --usd 2000": '"usd": 2000',
    "CLI key MERCHANT --realm live": "sk_live_",
    "CLI multisig-reset MERCHANT --realm live": "there are no signers",
    "CLI rescan SLUG --from-block N": "nothing from block 7 on was scanned yet",
    "CLI network SLUG --status inactive": "ethereum is inactive",
    "CLI network SLUG": "ethereum is active",
    "CLI prepare": "stage prod is prepared",
    "CLI mappings": "all 9 consumers of stage prod get their messages",
    "CLI start-functions": "22 functions of stage prod are called",
    "CLI gateway": "answers in the service's words",
    "CLI migrate": "deposits: migrated before",
    "CLI platform budget --usd 500 --email you@shop.example": "stack gateway-prod-budget stands",
    "CLI platform firewall --requests 30000": "stack gateway-prod-firewall stands",
    "CLI package": ".zip: ",
}
"""Each with a part of what it says."""
REFUSED = {
    "CLI collect --network ethereum --coin usdt",
    "CLI multisig-reset MERCHANT --realm live",
    "CLI rescan SLUG --from-block N",
}
"""Nothing is there that these are for: no coin is collected, there is no signer, no block was scanned."""
_INVOICE = "tests/deploy/test_deploy.py::test_the_page_leads_from_a_clone_to_a_live_invoice"
ELSEWHERE = {
    "CLI deploy --alarm-topic arn:aws:sns:eu-central-1:123456789012:gateway-alarms": _INVOICE,
    "CLI network ethereum --rpc-url https://first.example --rpc-url https://second.example": _INVOICE,
    'CLI merchant "Shop"': _INVOICE,
    "CLI key mch_… --realm live --permissions full": _INVOICE,
    "CLI deploy": "tests/deploy/test_deploy.py::test_the_command_sets_all_of_it",
    "CLI deploy --check": "tests/deploy/test_deploy.py::test_the_command_sets_all_of_it",
    "CLI delete": "tests/deploy/test_deploy.py::test_delete_takes_down_what_chalice_made_and_says_what_it_kept",
    "CLI rollback": "tests/deploy/test_rollback.py::test_functions_go_back_one_version",
    # It waits for a scan, and no function runs here.
    "CLI reconcile": "tests/contract/reconciliation/test_reconciliation.py::"
    "test_operators_see_it_over_http_and_at_the_command_line",
    # moto has no such stacks: CloudFormation is a stand-in's.
    "CLI platform domain --name pay.example.com --zone Z0123456789ABC": "tests/deploy/test_extras.py::"
    "test_the_command_shows_what_it_will_do_and_asks",
    "CLI platform network": "tests/deploy/test_extras.py::test_a_network_is_not_taken_from_its_functions",
}
"""Where the others run: the file and the test."""
PARSED = {
    # The node is not ours, and the secret goes to no other host: test_node_secrets.py has such URLs, over HTTP.
    "CLI network ethereum --rpc-url 'https://eth-mainnet.g.alchemy.com/v2/{secret:gateway-prod-node-alchemy}'",
}
"""Those that no test runs."""


def operate(walk: Walk) -> dict[str, dict[str, Any]]:
    """What each command of `RUN` said, by its line. It is run where the walk's nodes are."""
    before, found = sys.stdin, {}
    for line in RUN:
        sys.stdin = io.StringIO("password-of-a-node\n")  # of the nodes
        try:
            found[line] = walk.type(line)
        finally:
            sys.stdin = before
    return found
