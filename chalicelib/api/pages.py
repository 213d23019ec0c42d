"""Pages for people who have no key: payers, payees, visitors of payment links."""

from __future__ import annotations

import re

from chalicelib.api.context import Ctx


def page_root(ctx: Ctx, page: str) -> str:
    """The path that links of a page begin with: the one that it was called by, before `page` ("pay", "claim", "link"). Empty where
    that has anything else than letters of a path."""
    match = re.fullmatch(rf"(?P<root>[A-Za-z0-9/_.-]*?)/{page}/.*", ctx.address, re.ASCII | re.DOTALL)
    return match["root"] if match else ""
