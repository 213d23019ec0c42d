"""The coins that an invoice offers its payer, in requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from chalicelib.api.fields import CoinSlug, NetworkSlug
from chalicelib.api.models import CamelRequest
from chalicelib.api.problems import shown
from chalicelib.domain.catalogue.catalogue import Catalogue
from chalicelib.domain.errors import FieldProblem
from chalicelib.domain.invoices.choices import MOST_ACCEPTED


class AcceptedCoinRequest(CamelRequest):
    """A coin that the payer may choose."""

    coin: CoinSlug
    network: Annotated[
        NetworkSlug | None, Field(description="A network slug; absent: all active ones that have the coin.", examples=["tron"])
    ] = None


Accept = Annotated[
    list[AcceptedCoinRequest],
    Field(
        min_length=1,
        max_length=MOST_ACCEPTED,
        description="The coins that the payer may choose from, where there is no `currency`.",
        examples=[[{"coin": "usdt"}, {"coin": "btc", "network": "bitcoin"}]],
    ),
]


def choosable(sent: Mapping[str, Any], wrong: frozenset[str], catalogue: Catalogue) -> list[FieldProblem]:
    """The problems of a body that has to name a coin (`currency`), or a price in fiat and perhaps what is accepted."""
    accept, named = sent.get("accept"), sent.get("currency") is not None
    if named and accept is not None:
        return [FieldProblem("accept", shown("accept", accept), ("must not be there together with currency",))]
    if named or "currency" in wrong:
        return []
    if sent.get("fiatAmount") is None:
        return [FieldProblem("currency", None, ("is required",))]
    problems = []
    if sent.get("network") is not None:
        problems.append(FieldProblem("network", shown("network", sent["network"]), ("needs currency: else name it in accept",)))
    if isinstance(accept, list) and "accept" not in wrong:
        problems += [problem for place, one in enumerate(accept) for problem in _nowhere(place, one, catalogue)]
    return problems


def _nowhere(place: int, sent: Mapping[str, Any], catalogue: Catalogue) -> list[FieldProblem]:
    """The problem of a coin that is not on the network sent with it."""
    slug, network = sent["coin"].lower(), sent.get("network")
    if network is None or catalogue.coin(network.lower(), slug) is not None:
        return []
    known = f"must be one of: {', '.join(catalogue.coin_networks(slug))} ({slug})"
    return [FieldProblem(f"accept.{place}.network", shown("network", network), (known,))]
