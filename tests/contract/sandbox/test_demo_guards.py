"""The demo's reset can do nothing to any other stage."""

from __future__ import annotations

import pytest

from chalicelib import wiring
from chalicelib.domain.demo import DemoState
from chalicelib.store import wipe as wiping
from chalicelib.workers import demo


def test_no_other_stage_is_ever_wiped(stack):
    wired = wiring.services()
    with pytest.raises(ValueError, match="never wiped"):
        wired.wipe_demo()
    with pytest.raises(ValueError, match="no reset"):
        demo.run()
    assert list(wired.store.every(DemoState)) == []

    class Disguised:
        """Says that it is the demo, and names another stage's tables."""

        stage = "demo"

        def table(self, name: str) -> str:
            return f"gateway-local-{name}"

    with pytest.raises(ValueError, match="no table of the demo"):
        wiping.wipe(wired.store.models.connection.client, Disguised())  # type: ignore[arg-type]
