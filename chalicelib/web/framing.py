"""Who may show a page of ours in a frame, and why that is safe (Content-Security-Policy, `frame-ancestors`).

A page around ours can lie over it, cover part of it, or make a visitor click through to it (clickjacking). What a click can do
decides which pages may be framed:

* Checkout and payment link: in frames of the origins that the merchant lists, in nobody's where it lists none. Clicks choose a
  coin, copy, or open a wallet, which asks for itself, in a window that no page can cover, and shows where the money goes. A site
  that covers the address with another one could as well show an address without our page: only the merchant itself can put
  its trust in a site, and does so by listing it. The list is origins, without wildcards, so that no neighbour under a shared domain
  is meant.
* Claim page: in nobody's frame, whatever is listed. Its second click pays out.
* Pages of errors and of unknown ids: in nobody's frame. They say nothing of any merchant.
* Portal and console: in nobody's frame. An API key is at work there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_NOBODY = "frame-ancestors 'none'"
_POLICY = "Content-Security-Policy"


def framed(headers: Mapping[str, str], origins: Sequence[str]) -> dict[str, str]:
    """The headers of a page that these origins (`domain.merchants.shop.origin_of`) may show in a frame. Raises ValueError for
    headers that let somebody frame the page already, and for an origin that would be more than one source in a policy."""
    policy = headers[_POLICY]
    if policy.count(_NOBODY) != 1:
        raise ValueError("a page's own policy keeps it out of every frame")
    if any(not origin.startswith(("https://", "http://")) or set(origin) & set(" ;,*'\"\r\n\t") for origin in origins):
        raise ValueError("an origin is not one source of a policy")
    if not origins:
        return dict(headers)
    return {**headers, _POLICY: policy.replace(_NOBODY, f"frame-ancestors {' '.join(origins)}")}
