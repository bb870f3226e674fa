"""The account as a whole: who may call, what moto lacks, and that stopping leaves moto as it was."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.loaders import JSONFileLoader

from karpstack.rehearsal.aws import descriptions
from karpstack.rehearsal.aws.account import Account, unknown_region
from karpstack.rehearsal.aws.iam.pod_credentials import CredentialError
from karpstack.rehearsal.aws.iam.roles import Roles
from karpstack.rehearsal.aws.patching import Patches
from karpstack.rehearsal.aws.server import BACKENDS, SERVICES, Server, credentials_path
from karpstack.rehearsal.timing import Timing
from tests.unit.rehearsal.aws_world import account, ask, client, signed, trust


def test_patches_are_applied_once_and_undone() -> None:
    class Base:
        def greet(self) -> str:
            return "base"

    class Owner(Base):
        value = 1

    patches = Patches()
    for _ in range(2):
        patches.wrap(Owner, "greet", lambda original: lambda owner: f"<{original(owner)}>")
        patches.set(Owner, "value", 2)
    assert (Owner().greet(), Owner.value) == ("<base>", 2)
    patches.undo()
    assert (Owner().greet(), Owner.value) == ("base", 1)
    assert "greet" not in vars(Owner)


def test_stopping_leaves_moto_as_it_was(tmp_path: Path) -> None:
    from moto.core import responses
    from moto.core.responses import BaseResponse
    from moto.eks.responses import EKSResponse

    before, methods = BaseResponse.call_action, vars(responses)["method_names_from_class"]
    with account(tmp_path) as made:
        assert BaseResponse.call_action is not before
        assert hasattr(EKSResponse, "create_addon")
        made.client("eks").list_clusters()
        assert "create_addon" in vars(responses)["method_names_from_class"](EKSResponse)
    assert BaseResponse.call_action is before
    assert vars(responses)["method_names_from_class"] is methods
    assert "create_addon" not in methods(EKSResponse)
    assert not hasattr(EKSResponse, "create_addon")


def test_what_describes_the_services_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto.core import utils

    read: list[str] = []
    load = JSONFileLoader._load_file

    def counted(self: JSONFileLoader, *arguments: Any) -> Any:
        found = load(self, *arguments)
        read.extend([str(arguments[0])] if found is not None else [])
        return found

    monkeypatch.setattr(JSONFileLoader, "_load_file", counted)
    with account(tmp_path) as made:
        before = vars(utils)["create_loader"]()
        assert vars(utils)["create_loader"]() is before
        for service in ("ec2", "sqs"):
            for _ in range(2):
                other = boto3.session.Session(region_name=made.region)
                other.client(service, aws_access_key_id="-", aws_secret_access_key="-")
        assert len(read) == len(set(read))  # some were read before, by other tests
        monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
        theirs = botocore.session.get_session().get_component("data_loader")
        assert str(tmp_path) in theirs.search_paths
    monkeypatch.delenv("AWS_DATA_PATH")
    assert vars(utils)["create_loader"]() is not before
    assert botocore.session.get_session().get_component("data_loader") is not descriptions.loader()


def test_the_account_has_the_id_that_is_asked_for(tmp_path: Path) -> None:
    own = "210987654321"
    with account(tmp_path, account_id=own) as made:
        assert made.client("sts").get_caller_identity()["Arn"] == f"arn:aws:iam::{own}:user/administrator"
        role = made.client("iam").create_role(RoleName="one", AssumeRolePolicyDocument=trust("eks.amazonaws.com"))
        assert role["Role"]["Arn"] == f"arn:aws:iam::{own}:role/one"
        assert {vpc["OwnerId"] for vpc in made.client("ec2").describe_vpcs()["Vpcs"]} == {own}
        assert made.client("ec2").describe_images()["Images"]
        queue = made.client("sqs").create_queue(QueueName="one")["QueueUrl"]
        assert own in queue
        # A role's session too is in the account, and not in moto's own.
        taken = made.client("sts").assume_role(RoleArn=role["Role"]["Arn"], RoleSessionName="one")["Credentials"]
        keys = taken["AccessKeyId"], taken["SecretAccessKey"], taken["SessionToken"]
        assert client("sts", *keys).get_caller_identity()["Account"] == own
    with account(tmp_path) as made:
        assert made.client("sts").get_caller_identity()["Account"] == "123456789012"


def test_a_second_account_is_refused(aws: Account, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="one at a time"):
        Account("us-east-1", tmp_path / "prices.json", Timing()).prepare()


def test_the_catalogue_says_what_moto_knows(aws: Account) -> None:
    from moto.ec2.models.instance_types import INSTANCE_TYPES

    seen = {item["InstanceType"]: item for item in aws.client("ec2").describe_instance_types()["InstanceTypes"]}
    assert seen.keys() == INSTANCE_TYPES.keys()
    assert seen["m5.large"] == INSTANCE_TYPES["m5.large"]


SHIFTED = "arn:aws:eks:us-east-1:123456789012:cluster/test"


@pytest.mark.parametrize(
    ("arn", "key", "status"),
    [(SHIFTED, "AKIAKNOWN", "200"), ("arn:b", "AKIAKNOWN", "404"), (SHIFTED, "AKIABAD", "403")],
)
def test_zonal_shift_is_known_of_clusters_that_are_enabled_for_it(arn: str, key: str, status: str) -> None:
    found = ask(a_server(), f"/managedresources/{arn}", HTTP_AUTHORIZATION=signed("arc-zonal-shift", key))
    assert found.status.startswith(status)
    assert (b"appliedWeights" in found.body) is (status == "200")


def a_server() -> Server:
    return Server(
        lambda request: {"PriceList": [request["ServiceCode"]]},
        lambda *_: {},
        lambda key, question: None if key == "AKIAKNOWN" else ("UnrecognizedClientException", question.action),
        lambda arn: arn == SHIFTED,
    )


def test_the_server_routes() -> None:
    def credentials(cluster: str, token: str) -> dict[str, str]:
        if token != "good":
            raise CredentialError(403, "AccessDeniedException: no")
        return {"AccessKeyId": cluster}

    server = a_server()
    server._credentials = credentials
    good = ask(server, credentials_path("test"), HTTP_AUTHORIZATION="good")
    assert (good.status, json.loads(good.body)) == ("200 OK", {"AccessKeyId": "test"})
    bad = ask(server, credentials_path("test"), HTTP_AUTHORIZATION="bad")
    assert (bad.status[:3], bad.body) == ("403", b"AccessDeniedException: no")
    target = "AWSPriceListService.GetProducts"
    question, known = b'{"ServiceCode": "AmazonEC2"}', signed("pricing")
    prices = ask(server, "/", question, HTTP_X_AMZ_TARGET=target, HTTP_AUTHORIZATION=known)
    assert json.loads(prices.body) == {"PriceList": ["AmazonEC2"]}
    for shown in ("", "AKIAKNOWN", signed("pricing", "AKIASTRANGER")):
        stranger = ask(server, "/", question, HTTP_X_AMZ_TARGET=target, HTTP_AUTHORIZATION=shown)
        assert (stranger.status[:3], b"AmazonEC2" in stranger.body) == ("400", False)
    target = "AWSPriceListService.DescribeServices"
    unknown = ask(server, "/", b"{}", HTTP_X_AMZ_TARGET=target, HTTP_AUTHORIZATION=known)
    assert unknown.status.startswith("400")
    assert b"DescribeServices" in unknown.body


# What moto serves beside AWS's services, or for services that the account does not have.
SIDE_DOORS = (
    "/moto-api/",
    "/moto-api/data.json",
    "/moto-api/reset",
    "/moto-api/config",
    "/moto-api/recorder/start-recording",
    "/moto-api/proxy/passthrough",
    "/latest/meta-data/iam/security-credentials/",
    "/latest/api/token",
    "/favicon.ico",
    "/bucket/key",
    "/pool_1/.well-known/jwks.json",
    "/s3_us-east-1/bucket",
)
ELSEWHERE = ("s3", "motoapi.amazonaws.com", "moto_api", "instance_metadata", "execute-api", "lambda", "..", "dynamodb")


def test_moto_has_no_side_doors(aws: Account) -> None:
    """On the wire, with the administrator's key: it opens AWS's services and nothing else."""
    from moto import backends
    from moto.core.base_backend import BackendDict

    patches, server = Patches(), Server(dict, lambda *_: {}, aws.roles.denial, aws.eks.has_zonal_shift)
    server.start(patches)
    host = server.endpoint.removeprefix("http://")

    def request(method: str, path: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        return answer.status, answer.read().decode()

    key = aws.roles.access_key_id
    try:
        assert request("POST", "/?Action=DescribeVpcs", Authorization=signed("ec2", key))[0] == 200
        assert (
            request("POST", "/?Action=DescribeVpcs", Authorization=signed("ec2", key), Origin="http://a.test")[0] == 403
        )
        assert request("POST", "/?Action=DescribeVpcs", Authorization=signed("ec2", key), Host="a.test")[0] == 403
        for path in SIDE_DOORS:
            for shown in ("", signed("ec2", key), f"AWS {key}:x"):
                status, text = request("GET", path, **({"Authorization": shown} if shown else {}))
                assert status in (400, 404), (path, text)
                assert len(text) < 1000
        for service in ELSEWHERE:
            status, text = request("POST", "/", Authorization=signed(service, key))
            assert (status, f"has no {service}; it has ec2" in text) == (501, True)
        for service in SERVICES:
            # A handler that is not moto's `dispatch` would not ask `Roles.refuse`.
            found: Any = backends.get_backend(BACKENDS.get(service, service))  # type: ignore[call-overload]
            regions = found[aws.account_id] if isinstance(found, BackendDict) else {}
            backend = regions["us-east-1"] if "us-east-1" in regions else regions["aws"]
            assert {handler.__name__ for handler in backend.flask_paths.values()} == {"dispatch"}
            assert request("POST", "/", Authorization=signed(service, "AKIASTRANGER"))[0] >= 400
        for version in ("2012-06-01", "2015-12-01"):
            path = f"/?Action=DescribeLoadBalancers&Version={version}"
            assert request("POST", path, Authorization=signed("elasticloadbalancing", key))[0] == 200
            status, text = request("POST", path, Authorization=signed("elasticloadbalancing", "AKIASTRANGER"))
            assert (status, "The security token included in the request is invalid" in text) == (400, True)
    finally:
        server.stop()
        patches.undo()


def test_each_account_has_keys_of_its_own(aws: Account) -> None:
    other = Roles(aws.account_id)
    assert other.access_key_id != aws.roles.access_key_id
    assert other.secret_access_key != aws.roles.secret_access_key
    assert len(other.access_key_id) == 20


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_regions_of_aws_are_known(region: str) -> None:
    assert unknown_region(region) == ""


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_regions_of_other_partitions_are_refused_by_name(region: str) -> None:
    assert "is a region of the partition aws-" in unknown_region(region)


def test_another_region_is_refused_with_its_neighbour() -> None:
    assert unknown_region("eu-wst-1").endswith("did you mean eu-west-1?")
