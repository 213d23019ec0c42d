"""What every step of the main paths costs, one by one: calls of AWS, and the request units that DynamoDB bills.

The table is `costs.md` beside this file; `tests/contract/api/test_step_costs.py` compares it with what steps cost now, exactly.
`python -m tests.bench.steps` writes it anew. The paths that every payment and withdrawal takes are in main_steps.py, others in
further_steps.py and archive_steps.py, rare ones in checkout_steps.py and operator_steps.py, small requests in merchant_requests.py
and operator_requests.py, those on networks that are not simulated in live_steps.py, coin_steps.py and account_steps.py.

Each path is walked twice, and the second walk counts: what a process remembers, and what is made once for a merchant, is there.
Time stands still but for a millisecond at each look, and what is remembered for seconds is remembered for hours: a slow machine
counts the same. The simulated chain's own table is left out (accounting.py says how units are counted).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    os.environ.update({"STAGE": "local", "WEBHOOKS_ALLOW_PRIVATE": "true", "SANDBOX_BLOCK_SECONDS": "0"})

from chalicelib.wiring import services  # noqa: E402
from tests.bench.archive_steps import SHELVED  # noqa: E402
from tests.bench.costs import TABLE, Cost, shown  # noqa: E402
from tests.bench.further_steps import FURTHER  # noqa: E402
from tests.bench.live_steps import live  # noqa: E402
from tests.bench.main_steps import walked  # noqa: E402
from tests.bench.merchant_requests import merchants  # noqa: E402
from tests.bench.operator_requests import operators  # noqa: E402
from tests.bench.operator_steps import RARE  # noqa: E402
from tests.bench.walk import Walk, still  # noqa: E402
from tests.support.receiver import Receiver  # noqa: E402
from tests.support.stack import Stack  # noqa: E402


def measured(stack: Stack) -> dict[str, Cost]:
    """What each step costs, by its name. Each group of paths has a stack as after its first start; afterwards `stack` has to be put
    back before it is used."""
    costs: dict[str, Cost] = {}
    with still(), Receiver() as receiver:
        for group, settings in ((walked, {}), *FURTHER, *SHELVED, *RARE, (merchants, {}), (operators, {})):
            with patch.dict(os.environ, settings):
                stack.reset()
                services().clock.shift_ms = 0
                Walk(stack, receiver.url()).idle()
                for counts in (False, True):
                    walk = Walk(stack, receiver.url(), counts)
                    group(walk)
                costs |= walk.costs
        costs |= live(stack.aws)
    return costs


def main() -> int:
    import logging

    from chalicelib.settings import Settings
    from infra.local.aws import start_aws
    from tests.support.stack import first_stack

    logging.disable(logging.ERROR)
    aws = start_aws(Settings.from_environment())
    try:
        TABLE.write_text(shown(measured(first_stack(aws))), encoding="utf-8")
    finally:
        aws.stop()
    print(f"written: {TABLE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
