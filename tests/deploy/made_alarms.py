"""moto's CloudFormation, made to make the alarms of a template, which moto knows not. For the tests of deploying alone.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudwatch-alarm.html
"""

from __future__ import annotations

import re
from typing import Any

from moto.cloudformation import parsing
from moto.cloudwatch.models import cloudwatch_backends
from moto.core.common_models import CloudFormationModel


class Alarm(CloudFormationModel):
    """An alarm of a stack: CloudWatch of moto has it. Its properties are called there as in a template, in another spelling."""

    def __init__(self, name: str) -> None:
        self.physical_resource_id = name

    @staticmethod
    def cloudformation_name_type() -> str:
        return "AlarmName"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::CloudWatch::Alarm"

    @classmethod
    def create_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: dict[str, Any], account_id: str, region_name: str, **kwargs: Any
    ) -> Alarm:
        found = {re.sub(r"(?<!^)([A-Z])", r"_\1", key).lower(): each for key, each in cloudformation_json["Properties"].items()}
        given = {key.removeprefix("alarm_") if key != "alarm_actions" else key: each for key, each in found.items()}
        cloudwatch_backends[account_id][region_name].put_metric_alarm(
            **{"dimensions": [], "alarm_actions": [], **given, "name": resource_name}
        )
        return cls(resource_name)

    @classmethod
    def update_from_cloudformation_json(
        cls, original_resource: Any, new_resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> Alarm:
        return cls.create_from_cloudformation_json(new_resource_name, cloudformation_json, account_id, region_name)

    @classmethod
    def delete_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: dict[str, Any], account_id: str, region_name: str
    ) -> None:
        cloudwatch_backends[account_id][region_name].delete_alarms([resource_name])

    def is_created(self) -> bool:
        return True


def make_them() -> None:
    """Once this module is imported moto finds the class by itself, but for what it has remembered."""
    parsing.get_model_map.cache_clear()
    parsing.get_name_type_map.cache_clear()
