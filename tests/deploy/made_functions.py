"""Functions that stand, for commands that look at them."""

from __future__ import annotations

import io
import zipfile

import boto3
from botocore.exceptions import ClientError

from infra.deployment import forms


def make_function(name: str, content: str, **tags: str) -> None:
    """Make a function with a role of its name and tags, whose code is `content`, as if an earlier version had been deployed."""
    role = boto3.client("iam")
    trust = '{"Version": "2012-10-17", "Statement": []}'
    try:
        arn = role.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    except ClientError:
        arn = role.get_role(RoleName=name)["Role"]["Arn"]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.py", content)
    code = {"ZipFile": file.getvalue()}
    boto3.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.11",
        Role=arn,
        Handler="app",
        Code=code,
        Tags=tags,
        Environment={"Variables": dict.fromkeys(forms.SWITCHED, "on") | {"ARCHIVE_AFTER_DAYS": "400"}},
    )
