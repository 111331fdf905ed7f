"""Who a request comes from, as far as limits for one client need to know it."""

from __future__ import annotations

import ipaddress


def client_of(host: str) -> str:
    """An IPv4 address, or the network of an IPv6 address: who has one of those has 2^64."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a name that a proxy or a test gives
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), 64), strict=False))
