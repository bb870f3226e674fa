"""The look at an AWS account before `pulumi up`: each finding provoked once in the simulated account."""

from __future__ import annotations

import base64
import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.components.documents.iam import VERSION
from karpstack.preflight.aws import charts, names, network, quotas, spot_role, volumes
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.checks import CHECKS
from karpstack.preflight.aws.subject import subject
from karpstack.preflight.finding import UnknowableError, blockers, run
from karpstack.preflight.stack import State
from karpstack.rehearsal.aws.account import Account
from tests.unit.example_stack import configuration, eks
from tests.unit.preflight.preflight_world import Check, found, looked_at, one
from tests.unit.rehearsal.aws_world import client, trust

TABLE = yaml.safe_load(Path(__file__).with_name("preflight_aws.yaml").read_text())
NAME = "karpstack-eks"
LOG_GROUP = f"/aws/eks/{NAME}/cluster"
QUEUE = f"{NAME}-interruption"
#: Policy of a key: who launches nodes may use it.
ADMITTING = json.dumps(
    {
        "Version": VERSION,
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {
                    "AWS": [
                        f"arn:aws:iam::1:role/{role}"
                        for role in ("AWSServiceRoleForAutoScaling", f"{NAME}-karpenter-controller")
                    ]
                },
            }
        ],
    }
)


def default_pool(**changes: Any) -> dict[str, Any]:
    """The example's NodePool with changes of its spec; `requirements` go where they belong."""
    spec = json.loads(json.dumps(configuration("eks")["karpstack:nodePools"]["default"]))
    spec["template"]["spec"]["requirements"] += changes.pop("requirements", [])
    return {"default": {**spec, **changes}}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['check']}-{'+'.join(row.get('finds', ['nothing']))}")
def test_a_check_finds_what_it_should(aws: Account, row: dict[str, Any]) -> None:
    for quota, limit in row.get("quotas", {}).items():
        service, _, code = quota.partition("/")
        aws.quotas.set(service, code, limit)
    changes = {path.replace(".", "__"): value for path, value in row.get("changes", {}).items()}
    wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in row.get("requirements", {}).items()]
    changes["nodePools"] = default_pool(requirements=wanted)
    if "limits" in row:
        del changes["nodePools"]["default"]["limits"]
    if "alias" in row:
        changes["nodeClasses__default__amiSelectorTerms"] = [{"alias": row["alias"]}]
    state = State(frozenset({tuple(row["up"])} if "up" in row else ()), unread=row.get("unread", ""))
    module, name = row["check"].split(".")
    check = getattr(importlib.import_module(f"karpstack.preflight.aws.{module}"), name)
    said = list(check(looked_at(aws, state=state, raw=row.get("raw"), **changes)))
    expected = row.get("finds", {})
    assert [finding.code for finding in said] == list(expected)
    assert all(text in finding.what for finding, text in zip(said, expected.values(), strict=True))
    for part in ("consequence", "fix"):
        text = row.get(part, "")
        assert said == [] or (text.removeprefix("!") in getattr(said[0], part)) == (not text.startswith("!"))


def test_nothing_is_in_the_way_of_the_example(aws: Account) -> None:
    checked = run(CHECKS, looked_at(aws, cluster__publicAccessCidrs=["1.1.1.0/24"]))
    assert [one.name for one in checked] == list(CHECKS)
    assert blockers(checked) == []
    said = [finding.what for one in checked for finding in one.findings if finding.severity == "warning"]
    assert said == []


def test_a_first_up_from_outside_needs_a_public_endpoint(aws: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = one(network.check_new_vpc_access, looked_at(aws))
    assert finding.severity == "error"
    assert "without a public endpoint" in finding.what + finding.consequence
    made = State(resources=frozenset({("aws:eks/cluster:Cluster", NAME)}))
    assert not found(network.check_new_vpc_access, looked_at(aws, state=made))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:5000")  # a simulated account
    assert not found(network.check_new_vpc_access, looked_at(aws))


@pytest.mark.parametrize(
    ("mode", "changes", "severity"),
    [
        ("off", {}, ""),
        ("block-ingress", {}, ""),
        ("block-bidirectional", {}, "error"),
        ("block-bidirectional", {"network__natGateways": "none", "network__endpoints": True}, ""),
    ],
)
def test_blocked_public_access_stops_gateways(aws: Account, mode: str, changes: dict[str, Any], severity: str) -> None:
    aws.client("ec2").modify_vpc_block_public_access_options(InternetGatewayBlockMode=mode)
    assert [level for level, _ in found(network.public_access, looked_at(aws, **changes))] == [severity] * bool(
        severity
    )


def test_an_own_default_key_admits_who_launches_nodes(aws: Account) -> None:
    assert not found(volumes.default_key, looked_at(aws))
    kms = aws.client("kms")
    key = kms.create_key(Policy=json.dumps({"Version": VERSION, "Statement": []}))["KeyMetadata"]["KeyId"]
    aws.client("ec2").modify_ebs_default_kms_key_id(KmsKeyId=key)
    assert [severity for severity, _ in found(volumes.default_key, looked_at(aws))] == ["error", "warning"]
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=ADMITTING)
    assert not found(volumes.default_key, looked_at(aws))


def test_a_statement_that_denies_admits_nobody(aws: Account) -> None:
    key = aws.client("kms").create_key()["KeyMetadata"]["KeyId"]
    roles = ["AWSServiceRoleForAutoScaling", looked_at(aws).names.controller_role]
    arns = [f"arn:aws:iam::{aws.account_id}:role/{role}" for role in roles]
    own = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{aws.account_id}:root"}, "Action": "kms:*"}
    denied = {"Effect": "Deny", "Principal": {"AWS": arns}, "Action": "kms:CreateGrant", "Resource": "*"}
    aws.client("kms").put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps({"Statement": [own, denied]}))
    aws.client("ec2").modify_ebs_default_kms_key_id(KmsKeyId=key)
    assert len(found(volumes.default_key, looked_at(aws))) == 2


def test_a_default_key_that_is_disabled_or_to_be_deleted_encrypts_nothing(aws: Account) -> None:
    kms = aws.client("kms")
    key = kms.create_key(Policy=ADMITTING)["KeyMetadata"]["KeyId"]
    aws.client("ec2").modify_ebs_default_kms_key_id(KmsKeyId=key)
    assert not found(volumes.default_key, looked_at(aws))
    kms.disable_key(KeyId=key)
    assert one(volumes.default_key, looked_at(aws)).what.endswith("which is Disabled")
    kms.schedule_key_deletion(KeyId=key)
    disabled = one(volumes.default_key, looked_at(aws))
    assert disabled.severity == "error"
    assert disabled.what.endswith("which is PendingDeletion")


def test_an_encrypted_volume_leaves_the_default_key_with_aws(aws: Account) -> None:
    aws.client("ec2").create_volume(AvailabilityZone="us-east-1a", Size=10, Encrypted=True)
    assert not found(volumes.default_key, looked_at(aws))


@pytest.mark.parametrize(("ends", "severity"), [(1, "error"), (4_000_000_000, "warning"), (None, "warning")])
def test_a_sign_in_at_the_charts_registry(
    aws: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: int | None, severity: str
) -> None:
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "none.json"))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    assert not found(charts.sign_in, looked_at(aws))
    password = base64.b64encode(json.dumps({"expiration": ends} if ends else {}).encode()).decode()
    auth = base64.b64encode(f"AWS:{password}".encode()).decode()
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"public.ecr.aws": {"auth": auth}}}))
    finding = one(charts.sign_in, looked_at(aws))
    assert finding.severity == severity
    assert "helm registry logout public.ecr.aws" in finding.fix


def test_without_credentials_nothing_can_be_asked(aws: Account) -> None:
    with pytest.raises(UnknowableError, match=r"sts:GetCallerIdentity: .* give AWS credentials"):
        subject(Aws("us-east-1", lambda service: client(service, "AKIANOBODY", "x")), eks(), {}, State())


def test_zones_are_those_that_the_network_takes(aws: Account) -> None:
    assert looked_at(aws).zones() == ["us-east-1a", "us-east-1b", "us-east-1c"]


def test_an_account_that_has_never_used_spot(aws: Account) -> None:
    assert one(spot_role.spot_role, looked_at(aws)).severity == "note"
    aws.client("iam").create_service_linked_role(AWSServiceName="spot.amazonaws.com")
    assert not found(spot_role.spot_role, looked_at(aws))


def test_instances_of_others_count_and_the_stacks_own_do_not(aws: Account) -> None:
    aws.quotas.set("ec2", "L-1216C47A", 5)
    ec2 = aws.client("ec2")
    image = aws.client("ssm").get_parameter(
        Name="/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
    )["Parameter"]["Value"]
    made = ec2.run_instances(ImageId=image, InstanceType="m5.xlarge", MinCount=1, MaxCount=1)
    assert "4 of 5 are in use" in one(quotas.system_nodes, looked_at(aws)).what
    ec2.create_tags(
        Resources=[made["Instances"][0]["InstanceId"]],
        Tags=[{"Key": f"kubernetes.io/cluster/{NAME}", "Value": "owned"}],
    )
    assert not found(quotas.system_nodes, looked_at(aws))


def test_no_room_for_a_nat_gateway_in_its_zone(aws: Account) -> None:
    aws.quotas.set("vpc", "L-FE5A380F", 1)
    ec2 = aws.client("ec2")
    subnets = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": ["us-east-1a"]}])["Subnets"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    ec2.create_nat_gateway(SubnetId=subnets[0]["SubnetId"], AllocationId=address)
    assert "(us-east-1a): 1 of 1" in one(quotas.gateways, looked_at(aws)).what
    assert not found(quotas.gateways, looked_at(aws, network__zones=["us-east-1b", "us-east-1c"]))


def test_no_room_for_the_endpoint_of_s3(aws: Account) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    made = [
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName=f"com.amazonaws.us-east-1.{service}", VpcEndpointType=kind)
        for service, kind in (("s3", "Gateway"), ("dynamodb", "Gateway"), ("ec2", "Interface"))
    ]
    aws.quotas.set("vpc", "L-1B52E74A", 2)
    assert "gateway VPC endpoints: 2 of 2" in one(quotas.endpoints, looked_at(aws, network__endpoints=True)).what
    assert not found(quotas.endpoints, looked_at(aws))
    ec2.delete_vpc_endpoints(VpcEndpointIds=[made[1]["VpcEndpoint"]["VpcEndpointId"]])
    assert not found(quotas.endpoints, looked_at(aws, network__endpoints=True))


def make_log_group(aws: Account) -> tuple[str, str]:
    aws.client("logs").create_log_group(logGroupName=LOG_GROUP)
    return "aws:cloudwatch/logGroup:LogGroup", LOG_GROUP


def make_flow_log_group(aws: Account) -> tuple[str, str]:
    aws.client("logs").create_log_group(logGroupName=f"/aws/vpc/{NAME}/flow-logs")
    return "aws:cloudwatch/logGroup:LogGroup", f"/aws/vpc/{NAME}/flow-logs"


def make_role(aws: Account) -> tuple[str, str]:
    aws.client("iam").create_role(
        RoleName=f"{NAME}-karpenter-nodes", AssumeRolePolicyDocument=trust("ec2.amazonaws.com")
    )
    return "aws:iam/role:Role", f"{NAME}-karpenter-nodes"


def make_policy(aws: Account) -> tuple[str, str]:
    document = {"Version": VERSION, "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}]}
    made = aws.client("iam").create_policy(
        PolicyName=f"{NAME}-karpenter-zonal-shift", PolicyDocument=json.dumps(document)
    )
    return "aws:iam/policy:Policy", made["Policy"]["Arn"]


def make_queue(aws: Account) -> tuple[str, str]:
    return "aws:sqs/queue:Queue", aws.client("sqs").create_queue(QueueName=QUEUE)["QueueUrl"]


def make_rule(aws: Account) -> tuple[str, str]:
    aws.client("events").put_rule(Name=f"{NAME}-rebalance", EventPattern='{"source": ["aws.ec2"]}')
    return "aws:cloudwatch/eventRule:EventRule", f"{NAME}-rebalance"


def make_template(aws: Account) -> tuple[str, str]:
    made = aws.client("ec2").create_launch_template(
        LaunchTemplateName=f"{NAME}-system-nodes", LaunchTemplateData={"InstanceType": "m5.large"}
    )
    return "aws:ec2/launchTemplate:LaunchTemplate", made["LaunchTemplate"]["LaunchTemplateId"]


def make_alias(aws: Account) -> tuple[str, str]:
    kms = aws.client("kms")
    kms.create_alias(AliasName=f"alias/{NAME}-secrets", TargetKeyId=kms.create_key()["KeyMetadata"]["KeyId"])
    return "aws:kms/alias:Alias", f"alias/{NAME}-secrets"


def make_cluster(aws: Account) -> tuple[str, str]:
    role = aws.client("iam").create_role(RoleName="c", AssumeRolePolicyDocument=trust("eks.amazonaws.com"))
    subnets = [subnet["SubnetId"] for subnet in aws.client("ec2").describe_subnets()["Subnets"]]
    aws.client("eks").create_cluster(
        name=NAME, version="1.36", roleArn=role["Role"]["Arn"], resourcesVpcConfig={"subnetIds": subnets[:2]}
    )
    return "aws:eks/cluster:Cluster", NAME


@pytest.mark.parametrize(
    ("check", "make"),
    [
        (names.cluster, make_cluster),
        (names.flow_log_group, make_flow_log_group),
        (names.roles, make_role),
        (names.policies, make_policy),
        (names.queue, make_queue),
        (names.event_rules, make_rule),
        (names.launch_template, make_template),
        (names.key_alias, make_alias),
    ],
)
def test_a_name_that_somebody_else_has(aws: Account, check: Check, make: Any) -> None:
    resource = make(aws)
    logged: dict[str, Any] = {"network__flowLogRetentionDays": 30}
    assert one(check, looked_at(aws, **logged)).severity == "error"
    # By Pulumi's state, the stack itself may have made it.
    assert not found(check, looked_at(aws, state=State(frozenset({resource})), **logged))
    assert not found(check, looked_at(aws, name="another", **logged))


def test_the_log_group_that_is_left_over_is_taken_over(aws: Account) -> None:
    resource = make_log_group(aws)
    finding = one(names.log_group, looked_at(aws))
    assert finding.severity == "note"
    assert finding.fix.endswith(f"aws logs delete-log-group --region us-east-1 --log-group-name {LOG_GROUP}")
    assert not found(names.log_group, looked_at(aws, state=State(frozenset({resource}))))


def test_without_flow_logs_their_names_may_be_anybodys(aws: Account) -> None:
    make_flow_log_group(aws)
    aws.client("iam").create_role(RoleName=f"{NAME}-flow-logs", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    assert not found(names.flow_log_group, looked_at(aws))
    assert not found(names.roles, looked_at(aws))
    assert one(names.roles, looked_at(aws, network__flowLogRetentionDays=30)).severity == "error"


@pytest.mark.parametrize(("addon", "role"), [("ebsCsi", "ebs-csi"), ("loadBalancerController", "load-balancers")])
def test_names_of_what_runs_beside_karpenter_are_looked_at_where_it_does(aws: Account, addon: str, role: str) -> None:
    aws.client("iam").create_role(RoleName=f"{NAME}-{role}", AssumeRolePolicyDocument=trust("pods.eks.amazonaws.com"))
    assert not found(names.roles, looked_at(aws))
    assert f"{NAME}-{role}" in one(names.roles, looked_at(aws, addons={addon: True})).what


def test_policies_of_the_load_balancer_controller_too(aws: Account) -> None:
    document = {"Version": VERSION, "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}]}
    policy = f"{NAME}-load-balancers-balancing"
    aws.client("iam").create_policy(PolicyName=policy, PolicyDocument=json.dumps(document))
    assert not found(names.policies, looked_at(aws))
    assert policy in one(names.policies, looked_at(aws, addons={"loadBalancerController": True})).what


def test_a_longer_name_is_another_log_group(aws: Account) -> None:
    aws.client("logs").create_log_group(logGroupName=f"{LOG_GROUP}-archive")
    assert not found(names.log_group, looked_at(aws))


def test_without_a_queue_its_name_may_be_anybodys(aws: Account) -> None:
    make_queue(aws)
    on_demand = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]
    pool = default_pool(requirements=on_demand)
    seen = looked_at(aws, karpenter__interruptionQueue=False, nodePools=pool)
    assert not found(names.queue, seen)
