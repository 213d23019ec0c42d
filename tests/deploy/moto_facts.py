"""What AWS does, and moto as it is installed does not."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import boto3
from botocore.exceptions import ClientError


def swagger() -> dict[str, Any]:
    """What Chalice writes for one route with a parameter and CORS."""
    from chalice import Chalice
    from chalice.deploy.swagger import SwaggerGenerator

    app = Chalice("sample")
    app.route("/things/{id}", methods=["GET", "PUT"], cors=True)(lambda id: {})
    return SwaggerGenerator("eu-central-1", {"api_handler_arn": "arn:aws:lambda:eu-central-1:1:function:f"}).generate_swagger(app)


def imports_swagger() -> None:
    gateway = boto3.client("apigateway")
    api = gateway.import_rest_api(body=json.dumps(swagger()).encode())
    _holds_the_routes(api["id"])


def puts_swagger() -> None:
    gateway = boto3.client("apigateway")
    api = gateway.create_rest_api(name="sample")
    gateway.put_rest_api(restApiId=api["id"], mode="overwrite", body=json.dumps(swagger()).encode())
    _holds_the_routes(api["id"])


def makes_signing_keys() -> None:
    template = {
        "Resources": {
            "Hot": {
                "Type": "AWS::KMS::Key",
                "Properties": {
                    "KeySpec": "ECC_SECG_P256K1",
                    "KeyUsage": "SIGN_VERIFY",
                    "KeyPolicy": {"Version": "2012-10-17", "Statement": []},
                },
            }
        }
    }
    boto3.client("cloudformation").create_stack(StackName="keys", TemplateBody=json.dumps(template))
    kms = boto3.client("kms")
    (key,) = kms.list_keys()["Keys"]
    described = kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]
    assert (described["KeySpec"], described["KeyUsage"]) == ("ECC_SECG_P256K1", "SIGN_VERIFY")
    assert json.loads(kms.get_key_policy(KeyId=key["KeyId"], PolicyName="default")["Policy"])["Version"] == "2012-10-17"


def updates_a_table() -> None:
    table: dict[str, Any] = {
        "TableName": "a-table",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }
    formation = boto3.client("cloudformation")
    for protected in (False, True):
        properties = {**table, "DeletionProtectionEnabled": protected}
        text = json.dumps({"Resources": {"Table": {"Type": "AWS::DynamoDB::Table", "Properties": properties}}})
        (formation.update_stack if protected else formation.create_stack)(StackName="tables", TemplateBody=text)
    (resource,) = formation.list_stack_resources(StackName="tables")["StackResourceSummaries"]
    assert resource["PhysicalResourceId"] == "a-table"
    assert boto3.client("dynamodb").describe_table(TableName="a-table")["Table"]["DeletionProtectionEnabled"]


def lets_tls_through() -> None:
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="a-bucket", CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    refused = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::a-bucket", "arn:aws:s3:::a-bucket/*"],
    }
    only_tls = {**refused, "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    s3.put_bucket_policy(Bucket="a-bucket", Policy=json.dumps({"Version": "2012-10-17", "Statement": [only_tls]}))
    s3.put_object(Bucket="a-bucket", Key="a", Body=b"by TLS")
    s3.put_bucket_policy(Bucket="a-bucket", Policy=json.dumps({"Version": "2012-10-17", "Statement": [refused]}))
    try:
        s3.put_object(Bucket="a-bucket", Key="a", Body=b"at all")
    except ClientError:
        return
    raise AssertionError("a refusal without a condition counts")


def keeps_a_stages_settings() -> None:
    gateway = boto3.client("apigateway")
    api = gateway.import_rest_api(body=json.dumps({"openapi": "3.0.1", **_ONE_METHOD}).encode())["id"]
    first = gateway.create_deployment(restApiId=api, stageName="api")["id"]
    change = {"op": "replace", "path": "/*/*/throttling/rateLimit", "value": "7"}
    gateway.update_stage(restApiId=api, stageName="api", patchOperations=[change])
    second = gateway.create_deployment(restApiId=api, stageName="api")["id"]
    stage = gateway.get_stage(restApiId=api, stageName="api")
    assert stage["deploymentId"] == second != first
    assert stage["methodSettings"]["*/*"]["throttlingRateLimit"] == 7


def summarises_what_a_deployment_serves() -> None:
    gateway = boto3.client("apigateway")
    api = gateway.import_rest_api(body=json.dumps(swagger()).encode())["id"]
    first = gateway.create_deployment(restApiId=api, stageName="api")["id"]
    gateway.put_rest_api(restApiId=api, mode="overwrite", body=json.dumps({"openapi": "3.0.1", **_ONE_METHOD}).encode())
    second = gateway.create_deployment(restApiId=api, stageName="api")["id"]
    served = [
        gateway.get_deployment(restApiId=api, deploymentId=each, embed=["apisummary"])["apiSummary"] for each in (first, second)
    ]
    open_to_all = {"authorizationType": "NONE", "apiKeyRequired": False}
    assert served == [{"/things/{id}": dict.fromkeys(("GET", "PUT", "OPTIONS"), open_to_all)}, {"/": {"GET": open_to_all}}]
    assert "apiSummary" not in gateway.get_deployment(restApiId=api, deploymentId=second)


_ONE_METHOD: dict[str, Any] = {
    "info": {"title": "t", "version": "1", "description": "d"},
    "paths": {
        "/": {
            "get": {
                "responses": {"200": {"description": "d"}},
                "x-amazon-apigateway-integration": {"type": "HTTP", "uri": "https://a.example", "httpMethod": "GET"},
            }
        }
    },
}


def updates_the_architecture() -> None:
    role = boto3.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument='{"Version": "2012-10-17", "Statement": []}')
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("app.py", "")
    functions, code = boto3.client("lambda"), {"ZipFile": file.getvalue()}
    functions.create_function(FunctionName="f", Runtime="python3.13", Role=role["Role"]["Arn"], Handler="app.app", Code=code)
    for architecture in ("arm64", "x86_64"):
        functions.update_function_code(FunctionName="f", Architectures=[architecture], **code)
        assert functions.get_function_configuration(FunctionName="f")["Architectures"] == [architecture]


FACTS = (
    *(imports_swagger, puts_swagger, makes_signing_keys, updates_a_table, lets_tls_through),
    *(keeps_a_stages_settings, summarises_what_a_deployment_serves, updates_the_architecture),
)


def _holds_the_routes(api: str) -> None:
    gateway = boto3.client("apigateway")
    found = {r["path"]: r for r in gateway.get_resources(restApiId=api, embed=["methods"])["items"]}
    assert set(found) == {"/", "/things", "/things/{id}"}
    assert set(found["/things/{id}"]["resourceMethods"]) == {"GET", "PUT", "OPTIONS"}
    got = gateway.get_integration(restApiId=api, resourceId=found["/things/{id}"]["id"], httpMethod="GET")
    assert got["uri"] == LAMBDA
    assert got["type"].upper() == "AWS_PROXY"


LAMBDA = "arn:aws:apigateway:eu-central-1:lambda:path/2015-03-31/functions/arn:aws:lambda:eu-central-1:1:function:f/invocations"
