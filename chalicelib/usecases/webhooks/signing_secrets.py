"""The secrets that sign for an endpoint now, in the clear: for the function that delivers, and for it alone."""

from __future__ import annotations

import logging

from chalicelib.domain.webhooks.endpoints import WebhookEndpoint
from chalicelib.usecases.ports.secrets import NotOurs, Opener

log = logging.getLogger(__name__)

UNREADABLE = "the secret of this endpoint can not be read: rotate it"
"""The error that the merchant sees of an attempt that nothing could sign."""


def opened(opener: Opener, endpoint: WebhookEndpoint, now: int) -> tuple[str, ...]:
    """The secrets that sign at `now` (milliseconds since 1970), newest first; none where the newest can not be read.

    A secret of before that can not be read is left out: else the rotation that mends an endpoint would not, while it overlaps.
    Raises Unavailable: nothing is known of the secrets, and no attempt may be counted.
    """
    stored = endpoint.signing(now)
    if not endpoint.sealed:
        return stored  # from before secrets were encrypted
    clear: list[str] = []
    for sealed in stored:
        try:
            clear.append(opener.open(endpoint.tenant, endpoint.id, sealed))
        except NotOurs as error:
            log.error("ALARM %s: a secret of webhook endpoint %s does not open: %s", endpoint.tenant, endpoint.id, error)
            if not clear:
                return ()
    return tuple(clear)
