"""What IAM is asked about the controller's requests, and that a role is refused what its documents do not cover."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError

from components.documents.iam import CONTROLLER_POLICIES, ControllerScope
from rehearsal.aws.iam import questions
from rehearsal.rights.recording import UNKNOWN, Question
from tests.unit.rehearsal.aws_world import REGION, Stack, client, trust

ACCOUNT = "123456789012"
SCOPE = ControllerScope(
    partition="aws",
    region=REGION,
    account_id=ACCOUNT,
    cluster_name="test",
    node_role_arn=f"arn:aws:iam::{ACCOUNT}:role/node",
    interruption_queue_arn=f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue",
)
OWNED = {
    "kubernetes.io/cluster/test": "owned",
    "eks:eks-cluster-name": "test",
    "karpenter.sh/nodepool": "default",
}
PROFILE = {**OWNED, "topology.kubernetes.io/region": REGION, "karpenter.k8s.aws/ec2nodeclass": "default"}


def tags(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in values.items()]


def specifications(*kinds: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tags(OWNED)} for kind in kinds]


class Controller:
    """Somebody with Karpenter's role, and what was asked about their requests."""

    def __init__(self, stack: Stack, **documents: Mapping[str, Any]) -> None:
        self._stack = stack
        self._roles = stack.account.roles
        iam = stack.account.client("iam")
        role = self._roles.by_arn(stack.role("karpenter", trust("pods.eks.amazonaws.com")))
        for name, document in (documents or {key: make(SCOPE) for key, make in CONTROLLER_POLICIES.items()}).items():
            iam.put_role_policy(RoleName="karpenter", PolicyName=name, PolicyDocument=json.dumps(document))
        self._keys = self._roles.assume(role, "test", REGION)
        self.id = self._keys.access_key_id

    def client(self, service: str) -> Any:
        return client(service, self._keys.access_key_id, self._keys.secret_access_key, self._keys.session_token)

    def asked(self) -> dict[tuple[str, str], Question]:
        """Action and the end of the resource's pattern -> question."""
        found = self._roles.uses.recording.principals
        return {
            (use.question.action, use.question.pattern.split(":", 5)[-1]): use.question
            for principal in found
            for use in principal.uses
        }

    def template(self, **data: Any) -> None:
        """A launch template that Karpenter made."""
        self.client("ec2").create_launch_template(
            LaunchTemplateName="template",
            LaunchTemplateData={
                "ImageId": self._stack.image(),
                "IamInstanceProfile": {"Name": "nodes"},
                "SecurityGroupIds": [self._stack.group],
                "TagSpecifications": specifications("network-interface", "spot-instances-request"),
                **data,
            },
            TagSpecifications=specifications("launch-template"),
        )

    def fleet(self, **options: Any) -> dict[str, Any]:
        self._stack.ec2 = self.client("ec2")
        return self._stack.fleet("m5.large", TagSpecifications=specifications("instance", "volume", "fleet"), **options)


@pytest.fixture
def controller(stack: Stack) -> Controller:
    return Controller(stack)


def test_a_launch_asks_for_all_that_it_uses_makes_and_tags(controller: Controller) -> None:
    controller.template()
    controller.fleet(capacity="spot", zones="a")
    asked = controller.asked()
    launched = {"image/ami-*", "subnet/subnet-*", "launch-template/lt-*", "instance/*", "volume/*"}
    fleet = {resource for action, resource in asked if action == "ec2:CreateFleet"}
    assert fleet == {*launched, "fleet/*"}
    made = {"network-interface/*", "spot-instances-request/*", "security-group/sg-*"}
    assert {resource for action, resource in asked if action == "ec2:RunInstances"} == launched | made
    tagged = {"instance/*", "volume/*", "fleet/*", "network-interface/*", "spot-instances-request/*"}
    assert {resource for action, resource in asked if action == "ec2:CreateTags"} == {*tagged, "launch-template/*"}
    passed = asked["iam:PassRole", "role/node"]
    assert passed.context["iam:PassedToService"] == "ec2.amazonaws.com"
    interface = asked["ec2:RunInstances", "network-interface/*"].context
    assert interface["aws:RequestTag/kubernetes.io/cluster/test"] == "owned"
    assert interface["aws:TagKeys"] == sorted(OWNED)
    template = asked["ec2:RunInstances", "launch-template/lt-*"].context
    assert template["aws:ResourceTag/karpenter.sh/nodepool"] == "default"
    assert asked["ec2:CreateTags", "instance/*"].context["ec2:CreateAction"] == "CreateFleet"
    assert asked["ec2:CreateTags", "launch-template/*"].context["ec2:CreateAction"] == "CreateLaunchTemplate"


def test_on_demand_no_request_for_spot_is_asked_for(controller: Controller) -> None:
    controller.template()
    controller.fleet(zones="a")
    launched = {resource for action, resource in controller.asked() if action == "ec2:RunInstances"}
    assert "spot-instances-request/*" not in launched


def test_an_image_of_the_template_alone_is_asked_for_with_run_instances_only(controller: Controller) -> None:
    controller.template()
    specification = {"LaunchTemplateName": "template", "Version": "$Latest"}
    overrides = [{"InstanceType": "m5.large", "SubnetId": controller._stack.subnets[0]}]
    controller.fleet(LaunchTemplateConfigs=[{"LaunchTemplateSpecification": specification, "Overrides": overrides}])
    assert ("ec2:RunInstances", "image/ami-*") in controller.asked()
    assert ("ec2:CreateFleet", "image/ami-*") not in controller.asked()


def test_a_snapshot_is_asked_for_where_a_volume_names_one(controller: Controller) -> None:
    mapping = {"DeviceName": "/dev/xvda", "Ebs": {"SnapshotId": "snap-0a1b2c3d4e5f60718"}}
    controller.template(BlockDeviceMappings=[mapping])
    dry_run(controller)
    assert ("ec2:RunInstances", "snapshot/snap-*") in controller.asked()


def dry_run(controller: Controller) -> ClientError:
    """RunInstances as Karpenter tries its rights."""
    with pytest.raises(ClientError) as caught:
        controller.client("ec2").run_instances(
            DryRun=True,
            MinCount=1,
            MaxCount=1,
            LaunchTemplate={"LaunchTemplateName": "template", "Version": "$Latest"},
            InstanceType="m5.large",
            NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": controller._stack.subnets[0]}],
            TagSpecifications=specifications("instance", "volume", "network-interface"),
        )
    return caught.value


def test_a_trial_of_rights_asks_as_a_launch_does(controller: Controller) -> None:
    controller.template()
    assert dry_run(controller).response["Error"]["Code"] == "DryRunOperation"
    asked = controller.asked()
    assert asked["ec2:CreateTags", "instance/*"].context["ec2:CreateAction"] == "RunInstances"
    assert ("iam:PassRole", "role/node") in asked
    assert ("ec2:RunInstances", "subnet/subnet-*") in asked


def test_an_instance_profile_is_asked_for_with_its_path_and_tags(controller: Controller) -> None:
    iam = controller.client("iam")
    names = {"InstanceProfileName": "made"}
    iam.create_instance_profile(**names, Path="/karpenter/", Tags=tags(PROFILE))
    iam.add_role_to_instance_profile(**names, RoleName="node")
    iam.tag_instance_profile(**names, Tags=tags(PROFILE))
    iam.get_instance_profile(**names)
    iam.remove_role_from_instance_profile(**names, RoleName="node")
    iam.delete_instance_profile(**names)
    asked = controller.asked()
    made = {action for action, resource in asked if resource == "instance-profile/karpenter/made"}
    assert made == {
        f"iam:{verb}InstanceProfile" for verb in ("Create", "AddRoleTo", "Tag", "Get", "RemoveRoleFrom", "Delete")
    }
    tagging = asked["iam:TagInstanceProfile", "instance-profile/karpenter/made"].context
    assert {key.partition("/")[0] for key in tagging} >= {"aws:RequestTag", "aws:ResourceTag"}


def test_profiles_are_listed_by_their_path(stack: Stack) -> None:
    iam = stack.account.client("iam")
    iam.create_instance_profile(InstanceProfileName="made", Path="/karpenter/us-east-1/test/")
    listed = iam.list_instance_profiles(PathPrefix="/karpenter/us-east-1/test/")["InstanceProfiles"]
    assert [one["InstanceProfileName"] for one in listed] == ["made"]
    assert len(iam.list_instance_profiles()["InstanceProfiles"]) == 2


def test_names_are_asked_for_as_arns(controller: Controller, stack: Stack) -> None:
    stack.account.client("sqs").create_queue(QueueName="queue")
    sqs = controller.client("sqs")
    url = sqs.get_queue_url(QueueName="queue")["QueueUrl"]
    sqs.receive_message(QueueUrl=url)
    controller.client("ssm").get_parameter(
        Name="/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
    )
    stack.add_cluster()
    controller.client("eks").describe_cluster(name="test")
    asked = {(question.action, question.resource) for question in controller.asked().values()}
    queue = f"arn:aws:sqs:{REGION}:{ACCOUNT}:queue"
    assert {("sqs:GetQueueUrl", queue), ("sqs:ReceiveMessage", queue)} <= asked
    assert ("eks:DescribeCluster", f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/test") in asked
    (parameter,) = [resource for action, resource in asked if action == "ssm:GetParameter"]
    assert parameter.startswith(f"arn:aws:ssm:{REGION}::parameter/aws/service/eks/")


def refused(call: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call()
    error = caught.value.response["Error"]
    assert error["Code"] in ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")
    return str(error["Message"])


def test_what_is_not_the_clusters_is_refused(controller: Controller, stack: Stack) -> None:
    """By resource and condition: each of these actions is allowed on something else."""
    instance = stack.run()
    ec2, iam = controller.client("ec2"), controller.client("iam")
    text = refused(lambda: ec2.terminate_instances(InstanceIds=[instance]))
    assert f"ec2:TerminateInstances on resource: arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance}" in text
    refused(lambda: ec2.create_tags(Resources=[instance], Tags=tags({"Name": "mine"})))
    refused(lambda: iam.delete_instance_profile(InstanceProfileName="nodes"))
    refused(lambda: iam.create_instance_profile(InstanceProfileName="untagged"))
    refused(lambda: ec2.create_launch_template(LaunchTemplateName="untagged", LaunchTemplateData={"ImageId": "a"}))
    refused(lambda: controller.client("ssm").get_parameter(Name="/mine/secret"))
    refused(lambda: controller.client("eks").describe_cluster(name="other"))
    refused(lambda: controller.client("sqs").get_queue_url(QueueName="other"))


def test_another_role_is_not_passed(controller: Controller, stack: Stack) -> None:
    iam = controller.client("iam")
    iam.create_instance_profile(InstanceProfileName="made", Tags=tags(PROFILE))
    text = refused(lambda: iam.add_role_to_instance_profile(InstanceProfileName="made", RoleName="cluster"))
    assert f"iam:PassRole on resource: arn:aws:iam::{ACCOUNT}:role/cluster" in text


def test_prices_and_zonal_shifts_take_rights_too(controller: Controller, stack: Stack) -> None:
    shifted = questions.get_managed_resource(f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/test")
    denial = stack.account.roles.denial
    assert denial(controller.id, questions.get_products()) is None
    assert denial(controller.id, shifted) is None
    code, text = denial(controller.id, questions.get_managed_resource("arn:other")) or ("", "")
    assert (code, "arn:other" in text) == ("AccessDeniedException", True)
    assert denial("AKIASTRANGER", shifted) == ("UnrecognizedClientException", denial("AKIAOTHER", shifted)[1])  # type: ignore[index]
    assert denial(stack.account.roles.access_key_id, questions.get_managed_resource("arn:other")) is None


def test_an_action_that_is_unknown_is_allowed_on_something_and_recorded(stack: Stack) -> None:
    allowed = {"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "arn:aws:ec2:*:*:vpc/*"}
    somebody = Controller(stack, policy={"Version": "2012-10-17", "Statement": [allowed]})
    assert somebody.client("ec2").describe_vpcs()["Vpcs"]
    assert "ec2:DescribeAddresses" in refused(somebody.client("ec2").describe_addresses)
    assert {("ec2:DescribeVpcs", UNKNOWN), ("ec2:DescribeAddresses", UNKNOWN)} <= set(somebody.asked())


def test_what_the_administrator_asks_is_not_recorded(stack: Stack) -> None:
    stack.run()
    assert stack.account.roles.uses.recording.principals == []
