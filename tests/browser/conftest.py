"""One running local stack and one browser for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.running import Running, free_port


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the stack's runtime file says: `base_url`, `keys`."""
    running = Running(tmp_path_factory.mktemp("stack"), free_port())
    try:
        yield running.wait_until_up()
    finally:
        running.kill()


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
