"""Faults of moto that matter here, mended. Each repair says what is wrong and is tested twice: moto still needs it, and it works.

Only the local stack and the tests import this. A repair is applied once per process and stays.
"""

from __future__ import annotations

from infra.local.repairs.dynamodb import repair_dynamodb
from infra.local.repairs.sqs import repair_sqs


def install() -> None:
    """Apply the repairs that everything needs: DynamoDB, SQS, KMS, S3, CloudFormation, which makes them. May be called again."""
    from infra.local.repairs.clients import repair_clients
    from infra.local.repairs.cloudformation import repair_cloudformation
    from infra.local.repairs.direct import repair_way
    from infra.local.repairs.kms import repair_kms
    from infra.local.repairs.loading import repair_loading
    from infra.local.repairs.models import repair_models
    from infra.local.repairs.s3 import repair_s3
    from infra.local.repairs.simple_updates import repair_simple_updates
    from infra.local.repairs.speed import repair_speed

    repair_loading()
    repair_speed()
    # After what spares moto's services their reading: this imports all of them.
    repair_cloudformation()
    repair_dynamodb()
    repair_sqs()
    repair_kms()
    repair_s3()
    repair_simple_updates()
    repair_way()
    repair_clients()
    repair_models()


def install_for_deploying() -> None:
    """Apply all repairs, those of API Gateway and Lambda that only a deploy meets included. May be called again."""
    from infra.local.repairs.apigateway import repair_apigateway
    from infra.local.repairs.functions import repair_functions

    install()
    repair_apigateway()
    repair_functions()
