"""Two readers before a key signs (money rule 15): our own code, and the library of the network's family.

1. From the order alone the library builds the transaction. Unless each digest that it computes is the one that our bytes have,
   no key is asked.
2. The key signs these very digests.
3. The library decodes the signed bytes. Unless every field, the fee, the signer and the id are as ordered, the bytes are dropped:
   they are neither stored nor sent.

A crash anywhere leaves what was there before: nothing is stored here. The next try builds, compares and signs anew, with the same
nonce or inputs. What differs stands still until an operator looks: which reader is wrong nobody knows, so nothing is built anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

from chalicelib.domain.catalogue.catalogue import Network
from chalicelib.usecases.ports.second_reader import Reading, SecondReader
from chalicelib.usecases.ports.signing import Signed
from chalicelib.usecases.transactions.errors import ReadersDiffer

log = logging.getLogger(__name__)

AnyOrder = TypeVar("AnyOrder")


def sign_read_twice(
    network: Network,
    name: str,
    second: SecondReader[AnyOrder] | None,
    order: AnyOrder,
    digests: Sequence[bytes],
    sign: Callable[[Sequence[bytes]], Signed],
) -> Signed:
    """What `sign` makes of `digests`, those of our bytes, where both readers agree. `name` says in the alarm what it is.

    `second` is None for simulated networks, which the test realm alone has: they move no money, and no library knows their format.
    Raises ReadersDiffer, LookupError where any other network has none, and what `sign` raises.
    """
    if second is None:
        if not network.simulated or network.realm != "test":
            raise LookupError(f"{network.id} has no second reader, and {name} moves money")
        return sign(digests)
    try:
        built = second.built(order)
    except ValueError as error:
        _unreadable(network, name, error)
    if tuple(digests) != built.digests:
        ours = {"digests": _hex(digests), "order": order}
        _differ(network, name, ["digests"], ours, {"digests": _hex(built.digests), **built.reading})
    signed = sign(digests)
    try:
        read = second.read(order, signed.raw)
    except ValueError as error:
        _unreadable(network, name, error)
    wanted = {**built.reading, "txid": signed.txid}
    wrong = [field for field in sorted(wanted.keys() | read.keys()) if field not in read or wanted.get(field) != read[field]]
    if wrong:
        _differ(network, name, wrong, wanted, read)
    return signed


def _differ(network: Network, name: str, wrong: list[str], ours: Reading, theirs: Reading) -> NoReturn:
    # No signature is in a reading: who reads the log could send the bytes.
    named = ", ".join(wrong)
    log.error("ALARM %s: two readers differ about %s in %s: %s; the library reads %s", network.id, name, named, ours, theirs)
    raise ReadersDiffer(f"two readers differ about {name} in {named}")


def _unreadable(network: Network, name: str, error: ValueError) -> NoReturn:
    log.error("ALARM %s: the second reader refuses %s: %s", network.id, name, error)
    raise ReadersDiffer(f"the second reader refuses {name}: {error}") from error


def _hex(digests: Sequence[bytes]) -> list[str]:
    return [digest.hex() for digest in digests]
