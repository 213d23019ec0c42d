"""moto's S3, made to let a request through that a bucket's policy does not speak of."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from moto.s3.models import FakeBucket

_state = SimpleNamespace(installed=False)
_PLAIN_HTTP = {"Bool": {"aws:SecureTransport": "false"}}


def repair_s3() -> None:
    """Do not refuse what comes by TLS where a policy refuses what does not. May be called again.

    moto 5.2 knows no value of aws:SecureTransport, takes the condition as not met, and denies the action; a statement whose
    conditions are not met does not count. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
    """
    if _state.installed:
        return
    permission = FakeBucket.get_permission

    def of_tls(self: FakeBucket, action: str, resource: str) -> Any:
        whole = self.policy
        if whole is None:
            return permission(self, action, resource)
        document = json.loads(whole)
        document["Statement"] = [each for each in document["Statement"] if each.get("Condition") != _PLAIN_HTTP]
        self.policy = json.dumps(document).encode()
        try:
            return permission(self, action, resource)
        finally:
            self.policy = whole

    FakeBucket.get_permission = of_tls  # type: ignore[method-assign]
    _state.installed = True
