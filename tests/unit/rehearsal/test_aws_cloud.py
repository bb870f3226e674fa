"""The account as a cluster sees it: machines and the controller's environment."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehearsal.aws.account import Account
from rehearsal.aws.cloud import AwsCloud
from rehearsal.cluster.cloud import Cloud, ControllerIdentityError
from tests.unit.rehearsal.aws_world import CLUSTER, Stack, trust


class Tokens:
    """A cluster that makes tokens of their own description."""

    def create_token(self, namespace: str, service_account: str, audience: str) -> str:
        return f"{namespace}/{service_account}/{audience}"


@pytest.fixture
def aws(aws: Account) -> Account:
    aws._view.endpoint = "http://127.0.0.1:1"
    return aws


@pytest.fixture
def stack(aws: Account) -> Stack:
    made = Stack(aws)
    made.add_cluster()
    made.add_template()
    made.add_way_out()
    aws.client("eks").create_access_entry(clusterName=CLUSTER, principalArn=made.node_role, type="EC2_LINUX")
    return made


@pytest.fixture
def cloud(aws: Account) -> AwsCloud:
    made = aws.cloud(CLUSTER)
    made.bind(Tokens())  # type: ignore[arg-type]
    return made


def launch(stack: Stack) -> tuple[str, str]:
    instance = stack.fleet("m5.large", zones="b")["Instances"][0]["InstanceIds"][0]
    return instance, f"aws:///us-east-1b/{instance}"


def refusal(stack: Stack, cloud: AwsCloud) -> str:
    machine = cloud.machine(launch(stack)[1])
    assert machine is not None
    return machine.refusal


def test_it_is_a_cloud(cloud: AwsCloud) -> None:
    checked: Cloud = cloud
    assert checked.controller_engine == "karpenter-aws"


def test_a_machine_describes_itself_as_its_kubelet_would(stack: Stack, cloud: AwsCloud) -> None:
    instance, provider_id = launch(stack)
    machine = cloud.machine(provider_id)
    assert machine is not None
    assert machine.refusal == ""
    assert machine.kubelet_version == "v1.36.3"
    assert machine.node_name == stack.instance(instance)["PrivateDnsName"]
    assert machine.labels == {
        "kubernetes.io/hostname": machine.node_name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/zone": "us-east-1b",
        "topology.kubernetes.io/region": "us-east-1",
        "topology.k8s.aws/zone-id": "use1-az1",
    }
    assert cloud.has_machine(provider_id)
    stack.account.client("ec2").terminate_instances(InstanceIds=[instance])
    for gone in (provider_id, "aws:///us-east-1b/i-0123456789abcdef0"):
        assert cloud.machine(gone) is None
        assert not cloud.has_machine(gone)


def test_without_an_access_entry_nodes_stay_out(stack: Stack, cloud: AwsCloud) -> None:
    stack.account.client("eks").delete_access_entry(clusterName=CLUSTER, principalArn=stack.node_role)
    said = refusal(stack, cloud)
    assert stack.node_role in said
    assert "EC2_LINUX" in said


def test_without_the_worker_policy_nodes_stay_out(stack: Stack, cloud: AwsCloud) -> None:
    stack.account.client("iam").detach_role_policy(
        RoleName="node", PolicyArn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
    )
    assert "AmazonEKSWorkerNodePolicy" in refusal(stack, cloud)


def test_without_a_way_out_nodes_stay_out(stack: Stack, cloud: AwsCloud) -> None:
    ec2 = stack.account.client("ec2")
    gateway = ec2.describe_nat_gateways()["NatGateways"][0]["NatGatewayId"]
    ec2.delete_nat_gateway(NatGatewayId=gateway)
    assert "NAT gateway" in refusal(stack, cloud)


def test_endpoints_instead_of_a_way_out_are_those_that_nodes_need(stack: Stack, cloud: AwsCloud) -> None:
    ec2 = stack.account.client("ec2")
    gateway = ec2.describe_nat_gateways()["NatGateways"][0]["NatGatewayId"]
    ec2.delete_nat_gateway(NatGatewayId=gateway)
    made = [
        ec2.create_vpc_endpoint(
            VpcId=stack.vpc, ServiceName=f"com.amazonaws.us-east-1.{service}", VpcEndpointType="Interface"
        )["VpcEndpoint"]["VpcEndpointId"]
        for service in ("ec2", "ecr.api", "ecr.dkr")
    ]
    assert "no endpoint of s3" in refusal(stack, cloud)
    ec2.delete_vpc_endpoints(VpcEndpointIds=made[:1])
    assert "no endpoint of ec2, s3" in refusal(stack, cloud)


def test_a_subnet_goes_by_its_own_route_table(stack: Stack, cloud: AwsCloud) -> None:
    ec2 = stack.account.client("ec2")
    table = ec2.create_route_table(VpcId=stack.vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=stack.subnets[1])
    assert table in refusal(stack, cloud)


def test_without_a_profile_nodes_stay_out(stack: Stack, cloud: AwsCloud) -> None:
    ec2 = stack.account.client("ec2")
    ec2.delete_launch_template(LaunchTemplateName="template")
    stack.add_template(IamInstanceProfile={})
    assert "no instance profile" in refusal(stack, cloud)


def environment(cloud: AwsCloud, folder: Path, **annotations: str) -> dict[str, str]:
    return cloud.controller_environment("kube-system", "karpenter", annotations, folder)


def associate(stack: Stack) -> None:
    stack.account.client("eks").create_pod_identity_association(
        clusterName=CLUSTER, namespace="kube-system", serviceAccount="karpenter", roleArn=stack.pod_role
    )


CNI = ("kube-system", "aws-node")


def test_the_vpc_cni_acts_as_the_node_unless_it_has_a_role(stack: Stack, cloud: AwsCloud) -> None:
    _, node = launch(stack)
    refused = cloud.network_refusal(node, *CNI, {})
    assert "not authorized" in refused
    assert "role/node, as which aws-node asks EC2 for addresses, is not allowed ec2:CreateNetworkInterface" in refused
    own = stack.role("cni", trust("pods.eks.amazonaws.com"), "AmazonEKS_CNI_Policy")
    assert cloud.network_refusal(node, *CNI, {"eks.amazonaws.com/role-arn": own}) == ""
    assert "does not exist" in cloud.network_refusal(node, *CNI, {"eks.amazonaws.com/role-arn": f"{own}-gone"})
    iam = stack.account.client("iam")
    iam.attach_role_policy(RoleName="node", PolicyArn="arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy")
    assert cloud.network_refusal(node, *CNI, {}) == ""


def test_no_identity_is_an_error_with_its_fix(stack: Stack, cloud: AwsCloud, tmp_path: Path) -> None:
    with pytest.raises(ControllerIdentityError, match="pod identity association"):
        environment(cloud, tmp_path)


def test_pod_identity_needs_the_agent(stack: Stack, cloud: AwsCloud, tmp_path: Path) -> None:
    associate(stack)
    with pytest.raises(ControllerIdentityError, match="eks-pod-identity-agent of the cluster test does not exist"):
        environment(cloud, tmp_path)
    stack.account.client("eks").create_addon(clusterName=CLUSTER, addonName="eks-pod-identity-agent")
    with pytest.raises(ControllerIdentityError, match="is CREATING"):
        environment(cloud, tmp_path)


def test_a_pod_before_its_association_is_known_has_no_credentials(
    stack: Stack, cloud: AwsCloud, tmp_path: Path
) -> None:
    associate(stack)
    stack.account.client("eks").create_addon(clusterName=CLUSTER, addonName="eks-pod-identity-agent")
    now = datetime.now(UTC)
    for admitted, said in (
        (now, "admitted before its pod identity association was known"),
        (now + timedelta(seconds=2), "is CREATING"),
    ):
        with pytest.raises(ControllerIdentityError, match=said):
            cloud.controller_environment("kube-system", "karpenter", {}, tmp_path, {}, admitted)


def test_pod_identity(stack: Stack, cloud: AwsCloud, tmp_path: Path) -> None:
    associate(stack)
    stack.account.client("eks").create_addon(clusterName=CLUSTER, addonName="eks-pod-identity-agent")
    stack.account.eks.settle_addon(CLUSTER, "eks-pod-identity-agent")
    given = environment(cloud, tmp_path, **{"eks.amazonaws.com/role-arn": "arn:of:irsa"})
    assert given["AWS_CONTAINER_CREDENTIALS_FULL_URI"] == "http://127.0.0.1:1/pod-identity/test/v1/credentials"
    token = Path(given["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"])
    assert token.read_text() == "kube-system/karpenter/pods.eks.amazonaws.com"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert given["AWS_EC2_METADATA_DISABLED"] == "true"
    assert given["AWS_REGION"] == "us-east-1"
    assert not {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ROLE_ARN"} & given.keys()


def test_irsa(stack: Stack, cloud: AwsCloud, tmp_path: Path) -> None:
    given = environment(cloud, tmp_path, **{"eks.amazonaws.com/role-arn": "arn:of:irsa"})
    assert given["AWS_ROLE_ARN"] == "arn:of:irsa"
    assert given["AWS_ENDPOINT_URL"] == given["AWS_ENDPOINT_URL_STS"] == "http://127.0.0.1:1"
    token = Path(given["AWS_WEB_IDENTITY_TOKEN_FILE"])
    assert token.read_text() == "kube-system/karpenter/sts.amazonaws.com"
    assert "AWS_CONTAINER_CREDENTIALS_FULL_URI" not in given


def test_an_unbound_cloud_says_so(stack: Stack, aws: Account, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="bind"):
        environment(aws.cloud("unbound"), tmp_path, **{"eks.amazonaws.com/role-arn": "arn:of:irsa"})
