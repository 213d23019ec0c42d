"""Functions as AWS has them: what moto stores of what was deployed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from moto.awslambda.exceptions import UnknownFunctionException
from moto.awslambda.models import lambda_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from infra.local.aws import REGION
from infra.local.repairs.functions import may_circle


@dataclass(frozen=True, slots=True)
class Deployed:
    """A function as AWS has it."""

    name: str
    arn: str
    role: str
    code: str
    handler: str
    variables: dict[str, str]
    memory: int
    seconds: float
    stopped: bool
    circles: bool
    """Whether it may send to the queue that calls it, without end."""
    content: bytes = field(repr=False)
    """Its package."""

    @property
    def version(self) -> str:
        """Changes with the code and with the settings."""
        return json.dumps([self.code, self.handler, self.variables, self.memory])


def deployed_function(name: str) -> Deployed:
    """A function as AWS has it now. Raises LookupError where there is none."""
    found = function_of(name)
    if found is None:
        raise LookupError(f"there is no function {name}")
    return found


def function_of(name: str) -> Deployed | None:
    """The function of this name, None where there is none."""
    try:
        found: Any = lambda_backends[DEFAULT_ACCOUNT_ID][REGION].get_function(name)
    except UnknownFunctionException:
        return None
    return Deployed(
        name=found.function_name,
        arn=found.function_arn,
        role=found.role,
        code=found.code_sha_256,
        handler=found.handler,
        variables=dict(found.environment_vars),
        memory=int(found.memory_size),
        seconds=float(found.timeout),
        stopped=str(found.reserved_concurrency) == "0",
        circles=may_circle(found),
        content=found.code_bytes,
    )
