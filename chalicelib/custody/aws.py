"""Calls to KMS for keys, with its errors turned into ours."""

from __future__ import annotations

from typing import Any

from chalicelib.kms import KmsRefusal, ask_kms
from chalicelib.usecases.ports.failures import Unavailable


class SecretUnusable(Exception):
    """A stored secret can not be opened: altered, swapped, or encrypted for another purpose. A retry does not help."""


class NotThere(Unavailable):
    """There is no such key or alias."""


class Denied(Unavailable):
    """The caller may not do this with this key."""


class AlreadyThere(Unavailable):
    """An alias of that name exists already."""


_KINDS = {"NotFoundException": NotThere, "AlreadyExistsException": AlreadyThere, "AccessDeniedException": Denied}


def call(kms: Any, operation: str, what: str, **parameters: Any) -> dict[str, Any]:
    """`kms.<operation>(**parameters)`. `what` names the thing in error messages.

    Raises Unavailable (NotThere, AlreadyThere, Denied), or SecretUnusable where KMS says that the ciphertext or its context is not
    right.
    """
    answer = ask_kms(kms, operation, **parameters)
    if not isinstance(answer, KmsRefusal):
        return answer
    if answer.altered:
        raise SecretUnusable(f"KMS can not open {what}: it was altered, or belongs to something else ({answer.code})")
    said = _KINDS.get(answer.code, Unavailable)
    raise said(f"KMS {operation} for {what}: {answer.code}")
