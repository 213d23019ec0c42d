"""One call to KMS: for keys (`custody`), and for secrets of webhooks (`delivery`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Codes that speak of the ciphertext or of its context. All others (throttling, no rights, no such key) say nothing of it.
_ALTERED = ("InvalidCiphertextException", "IncorrectKeyException")


@dataclass(frozen=True, slots=True)
class KmsRefusal:
    """KMS refused, or did not answer. `code` is its error's, and all that is told of it."""

    code: str

    @property
    def altered(self) -> bool:
        """What should be decrypted was altered, or belongs to something else."""
        return self.code in _ALTERED


def ask_kms(kms: Any, operation: str, **parameters: Any) -> dict[str, Any] | KmsRefusal:
    """`kms.<operation>(**parameters)`. A refusal is an answer here and no exception: one that is raised while botocore's is
    handled carries its message in the traceback, which may quote the parameters."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        answer: dict[str, Any] = getattr(kms, operation)(**parameters)
    except ClientError as error:
        return KmsRefusal(str(error.response.get("Error", {}).get("Code", "unknown")))
    except BotoCoreError as error:
        return KmsRefusal(type(error).__name__)
    return answer
