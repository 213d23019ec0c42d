"""Calls to KMS, with botocore's errors turned into ours. No message of ours repeats a request or an answer."""

from __future__ import annotations

from typing import Any

from chalicelib.usecases.ports.failures import Unavailable


class SecretUnusable(Exception):
    """A stored secret can not be opened: altered, swapped, or encrypted for another purpose. A retry does not help."""


class NotThere(Unavailable):
    """There is no such key or alias."""


class Denied(Unavailable):
    """The caller may not do this with this key."""


class AlreadyThere(Unavailable):
    """An alias of that name exists already."""


# Codes that speak of the ciphertext or of its context. All others (throttling, no rights, no such key) say nothing of it.
_ALTERED = ("InvalidCiphertextException", "IncorrectKeyException")


def call(kms: Any, operation: str, what: str, **parameters: Any) -> dict[str, Any]:
    """`kms.<operation>(**parameters)`. `what` names the thing in error messages.

    Raises Unavailable (NotThere, AlreadyThere, Denied), or SecretUnusable where KMS says that the ciphertext or its context is not
    right.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    code: str
    try:
        answer: dict[str, Any] = getattr(kms, operation)(**parameters)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
    except BotoCoreError as error:
        code = type(error).__name__
    else:
        return answer
    # Raised outside of the handlers, so that no traceback carries botocore's message: it may quote the parameters.
    if code in _ALTERED:
        raise SecretUnusable(f"KMS can not open {what}: it was altered, or belongs to something else ({code})")
    kinds = {"NotFoundException": NotThere, "AlreadyExistsException": AlreadyThere, "AccessDeniedException": Denied}
    said = kinds.get(code, Unavailable)
    raise said(f"KMS {operation} for {what}: {code}")
