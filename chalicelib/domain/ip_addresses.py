"""IP addresses of the machine's own network (link-local, cloud metadata), in any spelling. Pure: resolves nothing."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_BESIDE_4 = tuple(
    IPv4Network(block)
    for block in (
        # Link-local (RFC 3927). AWS has its instance metadata, container credentials, DNS and time there:
        # docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
        # docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html (169.254.170.2)
        "169.254.0.0/16",
        "100.100.100.200/32",  # Alibaba Cloud's metadata: alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
        "192.0.0.192/32",  # Oracle Cloud's metadata, classic: docs.oracle.com/en-us/iaas/compute-cloud-at-customer
        "168.63.129.16/32",  # Azure's host: learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    )
)
_BESIDE_6 = tuple(
    IPv6Network(block)
    for block in (
        "fe80::/10",  # link-local (RFC 4291)
        "fec0::/10",  # site-local, which RFC 3879 deprecated
        "fd00:ec2::/32",  # AWS's services beside a machine, metadata at fd00:ec2::254
        "fd20:ce::/32",  # Google Cloud's metadata at fd20:ce::254: cloud.google.com/compute/docs/metadata/querying-metadata
    )
)
# Where the last 32 bits are an IPv4 address: compatible and mapped (RFC 4291), translated (RFC 2765), NAT64 (RFC 6052, 8215).
_V4_LAST = tuple(IPv6Network(block) for block in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Bits 64 to 95 of an address whose last 32 bits are an IPv4 address (RFC 5214)."""


def is_link_local_or_metadata(address: str) -> bool:
    """Whether the IP address (as text, without port) is link-local or a cloud's metadata address.

    An IPv6 address counts as the IPv4 addresses that it carries, too. Raises ValueError for text that is no address.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, IPv4Address):
        return _beside_4(ip)
    return ip.scope_id is not None or any(ip in block for block in _BESIDE_6) or any(map(_beside_4, embedded(ip)))


def embedded(ip: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address carries, by any of the schemes that routers or resolvers know."""
    number = int(ip)
    last = IPv4Address(number & 0xFFFFFFFF)
    if (any(ip in block for block in _V4_LAST) and number > 1) or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        yield last
    if ip.sixtofour is not None:  # RFC 3056
        yield ip.sixtofour
    if ip.teredo is not None:  # RFC 4380: its server and its client
        yield from ip.teredo


def _beside_4(ip: IPv4Address) -> bool:
    return any(ip in block for block in _BESIDE_4)
