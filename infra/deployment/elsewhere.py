"""Where else a stage stands. IAM is of the whole account: the functions of two regions have roles of one name, so that a deploy in
one changes the rights of the other's, and `delete` in one would leave the other's without any.

Each region that was deployed to has a bucket for deployments, and S3 lists those of all regions.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from infra.commands.common import CanNot
from infra.deployment import standing
from infra.deployment.bucket import Bucket

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d+")
_PATIENCE = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
"""Of a region that drops what is sent to it: with botocore's own limits each look would take five minutes."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Other regions of the account: where functions of the stage stand, and those that do not answer, with what was said."""

    stands: tuple[str, ...]
    silent: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.stands or self.silent)

    def __str__(self) -> str:
        shut = (f"perhaps in {region}, which does not answer ({said})" for region, said in self.silent.items())
        return ", ".join([*(f"in {region}" for region in self.stands), *shut])


def look(session: Any, bucket: Bucket, stage: str) -> Elsewhere:
    """Ask each other region with a bucket for deployments. `bucket` is this region's. Raises ClientError where S3 refuses."""
    stands, silent, head = [], {}, bucket.name.removesuffix(bucket.region)
    every = [str(each["Name"]) for each in bucket.client.list_buckets()["Buckets"]]
    others = (name.removeprefix(head) for name in every if name.startswith(head) and name != bucket.name)
    for region in sorted(filter(_REGION.fullmatch, others)):
        try:
            if standing.function_names(session.client("lambda", region_name=region, config=_PATIENCE), stage):
                stands.append(region)
        except (ClientError, BotoCoreError) as error:
            # One that is down, or was shut for the account, must keep nobody from working here: who asks tells of it.
            silent[region] = type(error).__name__ if isinstance(error, BotoCoreError) else error.response["Error"]["Code"]
    return Elsewhere(tuple(stands), silent)


def demand_no_other(session: Any, bucket: Bucket, stage: str, here: Collection[Any]) -> Elsewhere:
    """Where else it stands. `here` are its functions in this region: raises CanNot where there are none, and others elsewhere;
    ClientError."""
    found = look(session, bucket, stage)
    if found.stands and not here:
        raise CanNot(
            f"stage {stage} stands in {', '.join(found.stands)}, and not in account {bucket.owner}, region {bucket.region}: roles"
            " would be those of both. A stage stands in one region of an account: AWS_REGION says which it is"
        )
    return found


def not_here(session: Any, bucket: Bucket, stage: str) -> CanNot:
    """What to say of a stage that does not stand in this account and region. Raises botocore's ClientError."""
    found = look(session, bucket, stage)
    there = f": it stands in {', '.join(found.stands)}" if found.stands else ""
    return CanNot(
        f"stage {stage} does not stand in account {bucket.owner}, region {bucket.region}{there}."
        " AWS_REGION and AWS_PROFILE say which it is"
    )
