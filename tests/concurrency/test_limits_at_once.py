"""One key asked with by many at once: its limit holds exactly, and who is over it is told so, not that the key is unknown."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from chalicelib.wiring import services
from tests.concurrency.conftest import Crowd, at_once
from tests.support.stack import Response, Stack

pytestmark = pytest.mark.nodes

LIMIT = 20


def test_as_many_as_the_limit_and_the_rest_are_told_to_wait(on_dynamodb: Stack) -> None:
    crowd, clock = Crowd(on_dynamodb, "ethereum"), services().clock
    clock.shift_ms += 60_000 - clock.now_ms() % 60_000  # a whole minute lies ahead
    key = crowd.new_key(rate_limit=LIMIT)
    answers = at_once([partial(on_dynamodb.call, "GET", "/v1/balances", key) for _ in range(LIMIT + 10)])
    assert statuses(answers) == {200: LIMIT, 429: 10}
    crowd.wait(60)
    assert on_dynamodb.call("GET", "/v1/balances", key).status == 200
    unknown = key[:-1] + ("a" if key[-1] != "a" else "b")
    assert on_dynamodb.call("GET", "/v1/balances", unknown).status == 401


def statuses(answers: list[Response | BaseException]) -> Counter[int]:
    assert all(isinstance(answer, Response) for answer in answers), answers
    return Counter(answer.status for answer in answers if isinstance(answer, Response))
