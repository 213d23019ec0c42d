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
_CLI = "tests/contract/operator/test_cli.py::"
_RESTORING = "tests/contract/recovery/test_restoring.py::"
_AFTER = "tests/contract/recovery/test_after_restore.py::"
_CUSTODY = "tests/contract/wallets/test_wallet_custody.py::"
_ROTATION = "tests/contract/treasury/test_wallet_rotation.py::"
_SWITCH = "tests/contract/withdrawals/test_payment_switch.py::test_the_command_line_throws_it_too"
_MAPPINGS = "tests/deploy/test_mappings.py::test_stopping_functions_stops_their_queues_and_starting_starts_both"
_PAID_SINCE = _AFTER + "test_a_withdrawal_that_was_paid_after_the_second_is_not_paid_again"
_ROTATED = _ROTATION + "test_a_key_that_somebody_has_replaces_one_by_its_own_word_alone"
_FOUND = "test_every_address_is_found_and_none_is_given_out_twice"
BY_NAME = {
    "CLI after-restore --realm live": _PAID_SINCE,
    "CLI after-restore --realm live --book-unmatched": _AFTER
    + "test_a_withdrawal_that_was_paid_after_the_second_is_not_paid_again",
    "CLI after-restore --realm live --by-hand bitcoin --by-hand litecoin --done": _AFTER
    + "test_a_network_of_coins_is_put_right_by_hand",
    "CLI audit": _CLI + "test_audit",
    'CLI cold-adjust --network ethereum --coin eth --amount 2.00042 --reference 0x… --reason "paid the auditors" [--address '
    "REPLACED_WALLET]": "tests/contract/reconciliation/test_cold_adjusting.py::"
    "test_what_left_the_cold_wallet_is_booked_once_as_the_chain_says",
    "CLI fill-nonces --network SLUG --address WALLET": "tests/contract/transactions/test_give_up.py::"
    "test_the_nonce_goes_to_a_filler_and_ends_the_watch",
    'CLI fill-nonces --network SLUG --over wd_… --reason "…"': "tests/contract/treasury/test_filling_over.py::"
    "test_who_dies_at_any_write_gives_back_once",
    'CLI give-up bun_… [--without wd_…] --reason "…"': "tests/contract/payouts/test_bundles_apart.py::"
    "test_the_refused_payment_fails_and_the_others_are_paid",
    'CLI give-up wd_… --reason "…"': "tests/contract/transactions/test_give_up.py::"
    "test_the_nonce_goes_to_a_filler_and_ends_the_watch",
    "CLI mappings --check": "tests/deploy/test_mappings.py::test_it_sets_what_chalice_can_not_and_may_be_run_again",
    "CLI rebuild-order MERCHANT WITHDRAWAL [--nonce N]": "tests/contract/payouts/test_unhappy_orders.py::"
    "test_an_altered_order_is_not_signed",
    "CLI reconcile [--network SLUG]": "tests/contract/reconciliation/test_reconciliation.py::"
    "test_operators_see_it_over_http_and_at_the_command_line",
    "CLI rescan ethereum --from-block 21000000 [--to-block N]": _CLI + "test_scanned_blocks_are_looked_at_again",
    "CLI restore --realm live --merchant mch_… --from-block N": _AFTER + "test_a_network_of_coins_is_put_right_by_hand",
    "CLI restore --realm live --merchant mch_… --network bitcoin --from-block 840000": _AFTER
    + "test_a_network_of_coins_is_put_right_by_hand",
    "CLI restore --realm live --merchant mch_… --network ethereum --never-used bsc --never-used polygon --never-used arbitrum "
    "--never-used fantom": _RESTORING + "test_what_another_network_finds_later_is_listed",
    "CLI resume ethereum [--from-block N]": _CLI + "test_a_halted_network_is_taken_up_again",
    'CLI resume-payments --reason "key revoked"': _SWITCH,
    "CLI rotate SLUG --type hot --slot N --add": "tests/contract/payouts/test_slots.py::"
    "test_what_was_begun_in_a_slot_stays_there_when_its_wallet_is_replaced",
    "CLI rotate bitcoin --type cold --address bc1q…": _ROTATION + "test_a_cold_wallet_and_a_collector_are_replaced_too",
    "CLI rotate ethereum --type hot --import": _ROTATED,
    "CLI rotate ethereum --type hot [--merchant mch_…]": _ROTATION
    + "test_a_key_that_somebody_has_replaces_one_by_its_own_word_alone",
    "CLI seed-backup seed-prod.json": _RESTORING + _FOUND,
    'CLI seed-escrow seed-prod-escrow.json --public-key escrow-public.pem --confirm "hand out the seed of prod"': _RESTORING
    + "test_the_seed_leaves_the_stage_only_encrypted",
    "CLI seed-restore seed-prod.json": _RESTORING + _FOUND,
    "CLI start-functions": _MAPPINGS,
    "CLI stop-functions": _MAPPINGS,
    'CLI stop-payments --reason "key leaked"': _SWITCH,
    "CLI wallet-backup --out wallets-prod.json": _CUSTODY + "test_a_restored_wallet_signs",
    "CLI wallet-restore --from wallets-prod.json": _CUSTODY + "test_a_restored_wallet_signs",
}
"""The commands of the other pages, each with a test that gives the same command with the same options. Ids, blocks and files are
the test's."""
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
