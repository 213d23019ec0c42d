"""Deposit addresses from public keys alone (money rule 10): no private key is in reach of this module.

Light to import: the curve's library is loaded at the first address.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from chalicelib.domain.ids import Realm, network_id
from chalicelib.encoding import public_keys
from chalicelib.encoding.public_keys import EVM_NETWORKS, UTXO_NETWORKS, Chain, slug_of, spelling

if TYPE_CHECKING:
    from chalicelib.custody.bip32 import ExtendedPublicKey

POOLS = ("evm", "bitcoin", "litecoin", "tron")
"""Networks of a pool share their keys and their count of used indexes: one EVM address receives on all five networks."""
# Purpose and coin type (BIP-44, BIP-84; SLIP-44).
_PURPOSE = {"evm": "m/44'/60'", "bitcoin": "m/84'/0'", "litecoin": "m/84'/2'", "tron": "m/44'/195'"}
_ACCOUNT = {"live": 0, "test": 1}


def pool_of(network: str) -> str:
    """The pool of a network (slug or NetworkId): ``evm``, ``bitcoin``, ``litecoin`` or ``tron``. Raises LookupError."""
    slug = slug_of(network)
    return "evm" if slug in EVM_NETWORKS else slug


def account_path(realm: Realm, pool: str) -> str:
    """The account whose xpub serves `pool`: ``m/44'/60'/0'`` for live EVM. The account is 0 in live, 1 in test.

    Raises LookupError for an unknown pool or realm.
    """
    return f"{_PURPOSE[pool]}/{_ACCOUNT[realm]}'"


class _Receiving:
    """The receiving branch (``/0``) of one account, with what never changes from address to address made once."""

    def __init__(self, account: ExtendedPublicKey, path: str, pool: str, chain: Chain) -> None:
        # The scanner would never find coins that arrive under an xpub of another account: better no address than that.
        if account.depth != 3 or account.number != 0x80000000 + int(path.rsplit("/", 1)[1].removesuffix("'")):
            raise ValueError(f"the xpub of {pool} is not the one of {path}")
        branch = account.child(0)
        self._add = branch.key.add
        self._chain_code = branch.chain_code
        self._compressed = branch.key.format()
        self._path = path
        self._prefix = spelling(pool, chain).segwit if pool in UTXO_NETWORKS else None
        self._spell = public_keys.tron_address if pool == "tron" else public_keys.evm_address

    def address(self, index: int) -> tuple[str, str]:
        from chalicelib.custody.bip32 import HARDENED, InvalidChild

        if not 0 <= index < HARDENED:
            raise ValueError("an address index is from 0 to 2^31 - 1")
        digest = hmac.digest(self._chain_code, self._compressed + index.to_bytes(4, "big"), "sha512")
        try:
            key = self._add(digest[:32])
        except ValueError:
            raise InvalidChild(f"BIP-32 has no address of index {index} here: use the next one") from None
        if self._prefix is not None:
            address = public_keys.p2wpkh_address(self._prefix, key.format())
        else:
            address = self._spell(key.format(compressed=False)[1:])
        return address, f"{self._path}/0/{index}"


class XpubDeriver:
    """The port Deriver. `xpub_of` looks up the xpub of a realm and pool, None where there is none yet.

    An xpub is written once for good, so each is asked for once and kept for the life of the process. `chains` has by NetworkId
    what is not on its main chain.
    """

    def __init__(self, xpub_of: Callable[[Realm, str], str | None], chains: Mapping[str, Chain] | None = None) -> None:
        self._xpub_of, self._chains = xpub_of, dict(chains or {})
        self._branches: dict[tuple[Realm, str], _Receiving] = {}

    def derive(self, realm: Realm, network: str, index: int) -> tuple[str, str]:
        """Address at ``<account>/0/<index>`` in its public spelling, and its path.

        Raises LookupError when the realm has no xpub yet or the network is unknown; ValueError for an index out of range or
        an xpub that is not the account's; InvalidChild (a ValueError) for the one index in 2^127 that BIP-32 leaves out.
        """
        pool = pool_of(network)
        branch = self._branches.get((realm, pool))
        if branch is None:
            branch = self._branches[realm, pool] = self._load(realm, pool)
        return branch.address(index)

    def _load(self, realm: Realm, pool: str) -> _Receiving:
        from chalicelib.custody.bip32 import ExtendedPublicKey

        xpub = self._xpub_of(realm, pool)
        if xpub is None:
            raise LookupError(f"the realm {realm} has no xpub for {pool} yet: create the seed first")
        # A UTXO network is a pool of its own, of the same name.
        chain = self._chains.get(network_id(realm, pool), "main")
        return _Receiving(ExtendedPublicKey.parse(xpub), account_path(realm, pool), pool, chain)
