"""What accounts and subscriptions tell before `pulumi destroy`: each finding provoked once in the simulated ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from karpstack.components.naming import AksNames
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.subject import GROUP as RESOURCE_GROUP
from karpstack.preflight.azure.subscription import connect, ensure_subscription_has_cluster
from karpstack.preflight.destroy import balancers, foreign_groups, interfaces, subscription
from karpstack.preflight.destroy.checks import checks
from karpstack.preflight.destroy.subject import Subject
from karpstack.preflight.finding import Finding, NotAskedError, UnknowableError, run
from karpstack.preflight.stack import State
from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.azure.arm.errors import ArmError
from tests.unit.preflight.fake_cluster import CLAIMS, EKS, NAP, SERVICES, FakeCluster, of_the_stack
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.preflight.preflight_azure_world import GROUP, NODES, asked, lock, made
from tests.unit.preflight.test_asking_azure import azure as asked_of
from tests.unit.rehearsal.azure_world import AKS, GROUPS, IDENTITY, NETWORK, REGION, World, machine_id

AZURE = {**NAP, "region": REGION, "clusterName": "karpstack-aks"}
CLUSTER = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/karpstack-aks"
VNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/karpstack-aks"


@pytest.fixture
def cluster() -> FakeCluster:
    return of_the_stack()


# AWS


def balance(aws: Account, name: str, service: str, *tags: tuple[str, str]) -> None:
    """A load balancer of either generation, as a cluster's controller tags it."""
    client = aws.client(service)
    subnets = [subnet["SubnetId"] for subnet in aws.client("ec2").describe_subnets()["Subnets"]][:2]
    listed: Any = [{"Key": key, "Value": value} for key, value in tags]
    if service == "elbv2":
        client.create_load_balancer(Name=name, Subnets=subnets, Type="network", Tags=listed)
        return
    listener = {"Protocol": "tcp", "LoadBalancerPort": 80, "InstancePort": 30080}
    client.create_load_balancer(LoadBalancerName=name, Listeners=[listener], Subnets=subnets, Tags=listed)


def left(aws: Account, cluster: FakeCluster) -> list[Finding]:
    return list(balancers.balancers(Subject(cluster, EKS, Aws(aws.region, aws.client))))


OWNED = ("kubernetes.io/cluster/karpstack-eks", "owned")


OURS = ("elbv2.k8s.aws/cluster", "karpstack-eks")
GATEWAY = (
    "for the Gateway shop/gw",
    "delete the Gateway shop/gw and wait until it is gone; if it is already gone, aws",
)


@pytest.mark.parametrize(
    ("service", "tags", "said"),
    [
        (
            "elb",
            [OWNED, ("kubernetes.io/service-name", "shop/web")],
            (
                "for the Service shop/web, which no longer exists",
                "aws elb delete-load-balancer --region us-east-1 --load",
            ),
        ),
        (
            "elbv2",
            [OURS, ("service.k8s.aws/stack", "shop/web")],
            (
                "for the Service shop/web",
                "aws elbv2 delete-load-balancer --region us-east-1 --load-balancer-arn arn:aws:",
            ),
        ),
        ("elbv2", [OURS, ("ingress.k8s.aws/stack", "shop/in")], ("for the Ingress shop/in", "delete the Ingress")),
        ("elbv2", [OURS, ("gateway.k8s.aws.alb/stack", "shop/gw")], GATEWAY),
        ("elbv2", [OURS, ("gateway.k8s.aws.nlb/stack", "shop/gw")], GATEWAY),
        ("elb", [("kubernetes.io/cluster/karpstack-eks", "shared")], None),
        ("elb", [("kubernetes.io/cluster/karpstack-eks-2", "owned")], None),
        ("elbv2", [("kubernetes.io/cluster/karpstack-eks-2", "owned")], None),
        ("elbv2", [("elbv2.k8s.aws/cluster", "karpstack")], None),
    ],
)
def test_a_load_balancer_that_was_made_for_the_cluster(
    aws: Account, cluster: FakeCluster, service: str, tags: list[tuple[str, str]], said: tuple[str, str] | None
) -> None:
    balance(aws, "a1b2", service, *tags)
    found = left(aws, cluster)
    assert [finding.severity for finding in found] == (["error"] if said else [])
    for finding in found:
        assert said
        assert said[0] in finding.what
        assert said[1] in finding.fix


def test_a_service_that_exists_is_what_has_to_be_deleted(aws: Account, cluster: FakeCluster) -> None:
    balance(aws, "a1b2", "elb", OWNED, ("kubernetes.io/service-name", "shop/web"))
    cluster.put(SERVICES, "web", namespace="shop", spec={"type": "LoadBalancer"})
    assert not left(aws, cluster)


def test_a_load_balancer_in_the_stacks_vpc_alone(aws: Account, cluster: FakeCluster) -> None:
    balance(aws, "a1b2", "elb", OWNED)
    (balancer,) = aws.client("elb").describe_load_balancers()["LoadBalancerDescriptions"]
    for vpc, said in ((balancer["VPCId"], 1), ("vpc-0", 0)):
        state = made(("aws:ec2/vpc:Vpc", vpc))
        seen = Subject(cluster, EKS, Aws(aws.region, aws.client), None, state)
        assert len(list(balancers.balancers(seen))) == said


def test_a_security_group_whose_load_balancer_is_gone(aws: Account, cluster: FakeCluster) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    tags: Any = [{"ResourceType": "security-group", "Tags": [{"Key": OWNED[0], "Value": OWNED[1]}]}]
    group, nodes = (
        ec2.create_security_group(GroupName=name, Description="x", VpcId=vpc, TagSpecifications=tags)["GroupId"]
        for name in ("k8s-elb-a1b2", "eks-cluster-sg-karpstack-eks")
    )
    rule: Any = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=nodes, IpPermissions=[rule])

    def told() -> list[Finding]:
        return list(balancers.groups(Subject(cluster, EKS, Aws(aws.region, aws.client))))

    (finding,) = told()
    assert finding.what.startswith(f"the security group {group} (k8s-elb-a1b2)")
    revoke, _, delete = finding.fix.partition(", then ")
    assert f"--group-id {nodes} --protocol all --source-group {group}" in revoke
    assert delete.endswith(f"--group-id {group}")
    # While the load balancer is there, the group goes with it.
    balance(aws, "a1b2", "elb", OWNED)
    assert not told()


def test_a_security_group_of_awss_own_controller(aws: Account, cluster: FakeCluster) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    groups = []
    for name, owner, resource in (
        ("k8s-traffic-karpstackeks-1a2b3c", "karpstack-eks", {"elbv2.k8s.aws/resource": "backend-sg"}),
        ("k8s-shop-web-4d5e6f", "karpstack-eks", {"ingress.k8s.aws/stack": "shop/web"}),
        ("k8s-traffic-another-7a8b9c", "another", {"elbv2.k8s.aws/resource": "backend-sg"}),
    ):
        tags: Any = [
            {"Key": key, "Value": value} for key, value in {"elbv2.k8s.aws/cluster": owner, **resource}.items()
        ]
        specified: Any = [{"ResourceType": "security-group", "Tags": tags}]
        made = ec2.create_security_group(GroupName=name, Description="x", VpcId=vpc, TagSpecifications=specified)
        groups.append(made["GroupId"])
    found = list(balancers.groups(Subject(cluster, EKS, Aws(aws.region, aws.client))))
    shared, frontend = sorted(found, key=lambda finding: "shop" in finding.what)
    assert {finding.severity for finding in found} == {"error"}
    assert f"{groups[0]} (k8s-traffic-karpstackeks-1a2b3c)" in shared.what
    assert "the one that its load balancers share" in shared.what
    assert shared.fix.endswith(f"delete-security-group --region us-east-1 --group-id {groups[0]}")
    assert groups[1] in frontend.what


class NodeGroups:
    """A client of EKS, in whose cluster somebody has made a node group and a Fargate profile."""

    def can_paginate(self, operation: str) -> bool:
        return False

    def list_nodegroups(self, **_: str) -> Any:
        return {"nodegroups": ["own", "by-hand"]}

    def list_fargate_profiles(self, **_: str) -> Any:
        return {"fargateProfileNames": ["shop"]}


def test_node_groups_of_others_in_the_stacks_cluster(cluster: FakeCluster) -> None:
    """EKS refuses to delete the cluster when all else is gone, and the group's machines go on."""
    name = str(EKS["clusterName"])
    resources = {("aws:eks/cluster:Cluster", name), ("aws:eks/nodeGroup:NodeGroup", f"{name}:own")}
    seen = Subject(cluster, EKS, Aws("us-east-1", lambda _: NodeGroups()), state=State(frozenset(resources)))
    group, profile = foreign_groups.node_groups(seen)
    assert (group.severity, "by-hand" in group.what, "shop" in profile.what) == ("error", True, True)
    assert (
        "aws eks delete-nodegroup --region us-east-1 --cluster-name karpstack-eks --nodegroup-name by-hand" in group.fix
    )
    assert not list(foreign_groups.node_groups(replace(seen, state=State())))


def test_security_groups_of_others_in_the_stacks_vpc(aws: Account, cluster: FakeCluster) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = {}
    for name, tags in {
        "own": {},
        "by-hand": {},
        "discovered": dict([OWNED]),
        "of-another": {"aws:eks:cluster-name": "a"},
        "eks-cluster-sg": {"aws:eks:cluster-name": "karpstack-eks", **dict([OWNED])},
        "k8s-elb-a": dict([OWNED]),
    }.items():
        made[name] = ec2.create_security_group(GroupName=name, Description="x", VpcId=vpc)["GroupId"]
        if tags:
            ec2.create_tags(Resources=[made[name]], Tags=[{"Key": key, "Value": value} for key, value in tags.items()])
    resources = {("aws:ec2/vpc:Vpc", vpc), ("aws:ec2/securityGroup:SecurityGroup", made["own"])}
    seen = Subject(cluster, EKS, Aws(aws.region, aws.client), state=State(frozenset(resources)))
    found = list(foreign_groups.security_groups(seen))
    assert {one.severity for one in found} == {"error"}
    foreign = [name for name, group in made.items() if any(group in one.what for one in found)]
    assert foreign == ["by-hand", "discovered", "of-another"]
    assert not list(foreign_groups.security_groups(replace(seen, state=State())))


def test_interfaces_of_others_in_the_stacks_vpc(aws: Account, cluster: FakeCluster) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    ec2.create_network_interface(SubnetId=subnet, Description="Amazon EKS karpstack-eks")
    state = State(resources=frozenset({("aws:ec2/vpc:Vpc", vpc)}))
    seen = Subject(cluster, EKS, Aws(aws.region, aws.client), state=state)
    assert not list(interfaces.interfaces(seen))
    ec2.create_network_interface(SubnetId=subnet, Description="AWS Lambda VPC ENI-shop")
    (finding,) = interfaces.interfaces(replace(seen, aws=Aws(aws.region, aws.client)))
    assert (finding.severity, "AWS Lambda VPC ENI-shop" in finding.what) == ("error", True)
    assert not list(interfaces.interfaces(replace(seen, state=State())))


class Interfaces:
    """A client of AWS in whose VPC there are interfaces."""

    def __init__(self, *interfaces: Mapping[str, Any]) -> None:
        self._interfaces = interfaces

    def can_paginate(self, operation: str) -> bool:
        return False

    def describe_network_interfaces(self, **given: Any) -> Any:
        return {"NetworkInterfaces": [{"NetworkInterfaceId": "eni-1", **one} for one in self._interfaces]}

    def describe_instances(self, **given: Any) -> Any:
        (asked,) = given["Filters"]
        assert asked == {"Name": "tag-key", "Values": ["kubernetes.io/cluster/karpstack-eks"]}
        return {"Reservations": [{"Instances": [{"InstanceId": "i-own"}]}]}

    def describe_load_balancers(self, **given: Any) -> Any:
        arns = [f"arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/app/{name}/1" for name in ("own", "team-b")]
        return {"LoadBalancers": [{"LoadBalancerArn": arn, "VpcId": "vpc-1"} for arn in arns]}

    def describe_tags(self, **given: Any) -> Any:
        tags = {"own": "karpstack-eks", "team-b": "another"}
        described = [
            {
                "ResourceArn": arn,
                "Tags": [{"Key": "elbv2.k8s.aws/cluster", "Value": tags[arn.split("/")[2]]}],
            }
            for arn in given["ResourceArns"]
        ]
        return {"TagDescriptions": described}


@pytest.mark.parametrize(
    ("interface", "is_foreign"),
    [
        ({"Description": "Amazon EKS karpstack-eks"}, False),
        ({"Description": "Amazon EKS karpstack-eks-2"}, True),
        ({"Description": "aws-K8S-i-1"}, False),
        ({"Description": "aws-k8s-branch-eni", "InterfaceType": "branch"}, False),
        ({"Description": "of an endpoint", "InterfaceType": "vpc_endpoint"}, True),
        ({"Description": "", "Attachment": {"InstanceId": "i-own"}}, False),
        ({"Description": "", "Attachment": {"InstanceId": "i-bastion"}}, True),
        ({"Description": "ELB app/own/1"}, False),
        ({"Description": "ELB app/team-b/1"}, True),
        ({"Description": "ELB classic"}, True),
        ({"Description": "Interface for NAT Gateway nat-own", "InterfaceType": "nat_gateway"}, False),
        ({"Description": "Interface for NAT Gateway nat-2", "InterfaceType": "nat_gateway"}, True),
        # What else the stack's program makes.
        ({"Description": "", "Attachment": {"InstanceId": "i-state"}}, False),
        ({"Description": "ELB net/state/1"}, False),
        ({"Description": "ELB state"}, False),
        ({"Description": "mine", "NetworkInterfaceId": "eni-state"}, False),
    ],
)
def test_whose_an_interface_is(interface: dict[str, Any], is_foreign: bool, cluster: FakeCluster) -> None:
    """A bastion, a load balancer of Terraform's or another cluster in the stack's VPC: its subnets would stay."""
    balancer = "arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/state/1"
    own = frozenset(
        {
            ("aws:ec2/vpc:Vpc", "vpc-1"),
            ("aws:ec2/natGateway:NatGateway", "nat-own"),
            ("aws:ec2/instance:Instance", "i-state"),
            ("aws:lb/loadBalancer:LoadBalancer", balancer),
            ("aws:elb/loadBalancer:LoadBalancer", "state"),
            ("aws:ec2/networkInterface:NetworkInterface", "eni-state"),
        }
    )
    account = Aws("us-east-1", lambda service: Interfaces(interface, interface))
    found = list(interfaces.interfaces(Subject(cluster, EKS, account, state=State(resources=own))))
    # A load balancer and an instance are told once.
    once = "ELB" in interface["Description"] or "Attachment" in interface
    assert len(found) == is_foreign * (1 if once else 2)
    assert all(interface.get("Attachment", {}).get("InstanceId", interface["Description"]) in one.what for one in found)


def test_without_a_right_the_other_interfaces_are_found_all_the_same(cluster: FakeCluster) -> None:
    refused = {"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}

    class Refusing(Interfaces):
        def describe_instances(self, **given: Any) -> Any:
            raise ClientError(refused, "DescribeInstances")

    listed = ({"Description": "", "Attachment": {"InstanceId": "i-1"}}, {"Description": "AWS Lambda VPC ENI-shop"})
    account = Aws("us-east-1", lambda service: Refusing(*listed))
    state = State(resources=frozenset({("aws:ec2/vpc:Vpc", "vpc-1")}))
    found = interfaces.interfaces(Subject(cluster, EKS, account, state=state))
    assert "AWS Lambda" in next(found).what
    with pytest.raises(NotAskedError, match="no"):
        next(found)


class GuardDuty:
    """A client of EC2 in whose VPC GuardDuty has an endpoint, which the simulated account has not."""

    def can_paginate(self, operation: str) -> bool:
        return False

    def describe_network_interfaces(self, **given: Any) -> Any:
        found = {"NetworkInterfaceId": "eni-1", "InterfaceType": "vpc_endpoint"}
        return {"NetworkInterfaces": [{**found, "Description": "VPC Endpoint Interface vpce-1"}]}

    def describe_vpc_endpoints(self, **given: Any) -> Any:
        return {"VpcEndpoints": [{"Tags": [{"Key": "GuardDutyManaged", "Value": "true"}]}]}


def test_what_guard_duty_puts_into_the_vpc(cluster: FakeCluster) -> None:
    own = frozenset({("aws:ec2/vpc:Vpc", "vpc-1")})
    account = Aws("us-east-1", lambda service: GuardDuty())
    (finding,) = interfaces.interfaces(Subject(cluster, EKS, account, state=State(resources=own)))
    assert "GuardDuty's Runtime Monitoring has created the VPC endpoint vpce-1" in finding.what
    assert "delete-vpc-endpoints --region us-east-1 --vpc-endpoint-ids vpce-1" in finding.fix
    made = State(resources=own | {("aws:ec2/vpcEndpoint:VpcEndpoint", "vpce-1")})
    account = Aws("us-east-1", lambda service: GuardDuty())
    assert not list(interfaces.interfaces(Subject(cluster, EKS, account, state=made)))


def test_more_load_balancers_than_are_told_at_once(aws: Account, cluster: FakeCluster) -> None:
    for number in range(21):
        balance(aws, f"many-{number}", "elb", OWNED)
    assert len(left(aws, cluster)) == 21


# Azure


@pytest.fixture
def world() -> Iterator[World]:
    """A subscription with the stack's network and cluster."""
    started = World()
    started.azure.start()
    started.arm.put(GROUP, GROUPS, {"location": REGION})
    subnets = [{"name": "nodes", "properties": {"addressPrefix": "10.224.0.0/20"}}]
    space = {"addressPrefixes": ["10.224.0.0/16"]}
    started.arm.put(VNET, NETWORK, {"location": REGION, "properties": {"addressSpace": space, "subnets": subnets}})
    started.arm.put(CLUSTER, AKS, started.cluster_body(nodeResourceGroup="karpstack-aks-nodes"))
    yield started
    started.azure.stop()


STATE = made(("group", GROUP), ("network", VNET), ("cluster", CLUSTER.replace("resourceGroups", "resourcegroups")))


def seen(world: World, cluster: FakeCluster, state: State | None = STATE) -> Subject:
    azure: Azure = asked(world)
    return Subject(cluster, AZURE, None, azure, state)


def machine(world: World, name: str, **tags: str) -> None:
    """A machine in the node resource group, with its interface in the stack's subnet."""
    interface = f"{NODES}/providers/Microsoft.Network/networkInterfaces/{name}"
    put_interface(world, interface)
    world.arm.put(machine_id(name, NODES), "2025-04-01", {**world.machine_body(interface), "tags": tags})


def put_interface(world: World, identifier: str) -> None:
    configuration = {"name": "one", "properties": {"subnet": {"id": f"{VNET}/subnets/nodes"}}}
    world.arm.put(identifier, NETWORK, {"location": REGION, "properties": {"ipConfigurations": [configuration]}})


def test_another_subscription_than_the_stacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the stack is found there, so that nothing would seem to be in the way."""
    monkeypatch.setenv("ARM_SUBSCRIPTION_ID", "of-another-stack")
    state = made((RESOURCE_GROUP, GROUP), ("azure-native:authorization:RoleAssignment", "/subscriptions/hub/x"))
    with pytest.raises(UnknowableError, match=r"are in the subscription .*, and .* names of-another-stack"):
        connect({}, state)
    own = GROUP.split("/")[2]
    for names in ({"azure-native:subscriptionId": own.upper()}, {"azure-native:subscriptionId": own}):
        assert connect(names, state)
    assert connect({}, State())
    monkeypatch.delenv("ARM_SUBSCRIPTION_ID")
    assert connect({}, state) is None


def test_a_subscription_without_the_nodes_group_is_not_the_stacks(world: World) -> None:
    """Without Pulumi's state, nothing else says it."""
    ensure_subscription_has_cluster(asked(world), AksNames("karpstack-aks"))
    with pytest.raises(UnknowableError, match="has no cluster karpstack-other"):
        ensure_subscription_has_cluster(asked(world), AksNames("karpstack-other"))


@pytest.mark.parametrize(
    ("clusters", "is_refused"), [((200, '{"value": [{"name": "Shop"}]}'), False), ((403, "no"), False), (None, True)]
)
def test_a_cluster_that_was_there_before_is_known_by_its_name(
    clusters: tuple[int, str] | None, is_refused: bool
) -> None:
    """Its nodes' group has another name. A login that may not list clusters passes."""
    with FakeServer() as server:
        server.otherwise = 404, '{"error": {"code": "ResourceGroupNotFound"}}'
        if clusters:
            server.said["/subscriptions/a/providers/Microsoft.ContainerService/managedClusters"] = clusters
        with pytest.raises(UnknowableError) if is_refused else nullcontext():
            ensure_subscription_has_cluster(asked_of(server), AksNames("shop"))


def test_nothing_of_azure_is_in_the_way_of_the_stack_alone(world: World, cluster: FakeCluster) -> None:
    machine(world, "aks-default-1", **{"karpenter.sh_nodepool": "default"})
    cluster.objects[CLAIMS][0]["status"]["providerID"] = f"azure://{machine_id('aks-default-1', NODES)}"
    checked = run(checks(seen(world, cluster)), seen(world, cluster))
    said = {(each.name, finding.severity) for each in checked for finding in each.findings}
    assert said == {("duration", "note")}


@pytest.mark.parametrize("scope", [GROUP, NODES, VNET, GROUP.rpartition("/resourceGroups")[0]])
@pytest.mark.parametrize("level", ["CanNotDelete", "ReadOnly"])
def test_locks_of_either_kind_are_in_the_way(world: World, cluster: FakeCluster, scope: str, level: str) -> None:
    lock(world, scope, level)
    (finding,) = subscription.locks(seen(world, cluster))
    assert (finding.severity, finding.what) == ("error", f"the lock keep ({level}) is on {scope}")


@pytest.mark.parametrize("scope", [GROUP, VNET])
def test_what_is_locked_cannot_be_deleted(world: World, scope: str) -> None:
    lock(world, scope, "CanNotDelete")
    with pytest.raises(ArmError, match=r"ScopeLocked.*cannot perform delete operation"):
        world.arm.delete(GROUP, GROUPS)


def test_a_locked_node_resource_group_keeps_the_cluster(world: World) -> None:
    lock(world, NODES, "CanNotDelete")
    with pytest.raises(ArmError, match="ScopeLocked"):
        world.arm.delete(CLUSTER, AKS)


def test_locks_of_other_groups_are_theirs(world: World, cluster: FakeCluster) -> None:
    world.arm.put(f"{GROUP}-2", GROUPS, {"location": REGION})
    lock(world, f"{GROUP}-2", "CanNotDelete")
    assert not list(subscription.locks(seen(world, cluster)))


def test_a_lock_above_a_role_that_the_stack_has_given(world: World, cluster: FakeCluster) -> None:
    network = f"{GROUP}-hub/providers/Microsoft.Network/virtualNetworks/hub"
    world.arm.put(f"{GROUP}-hub", GROUPS, {"location": REGION})
    lock(world, f"{GROUP}-hub", "CanNotDelete")
    role = f"{network}/subnets/nodes/providers/Microsoft.Authorization/roleAssignments/1"
    (finding,) = subscription.locks(seen(world, cluster, made(("role", role))))
    assert finding.what.endswith("karpstack-aks-hub")


@pytest.mark.parametrize("subnet", ["nodes", None])
def test_a_lock_above_an_existing_subnet_where_the_state_was_not_shown(
    world: World, cluster: FakeCluster, subnet: str | None
) -> None:
    network = f"{GROUP}-hub/providers/Microsoft.Network/virtualNetworks/hub"
    world.arm.put(f"{GROUP}-hub", GROUPS, {"location": REGION})
    lock(world, f"{GROUP}-hub", "CanNotDelete")
    named = {"karpstack:network": {"subnetId": f"{network}/subnets/{subnet}"}} if subnet else {}
    found = list(subscription.locks(Subject(cluster, AZURE, None, asked(world), None, named)))
    assert len(found) == (1 if subnet else 0)


def test_a_machine_that_no_node_claim_names(world: World, cluster: FakeCluster) -> None:
    machine(world, "aks-lost", **{"karpenter.sh_nodepool": "default"})
    machine(world, "jump-host", owner="somebody")
    lost, jump = subscription.machines(seen(world, cluster))
    assert (lost.severity, jump.severity) == ("warning", "warning")
    assert "aks-lost in karpstack-aks-nodes has Karpenter's tags, but no NodeClaim refers to it" in lost.what
    assert "jump-host is in karpstack-aks-nodes, but Karpenter did not create it" in jump.what


def test_an_interface_of_somebody_else_in_the_stacks_network(world: World, cluster: FakeCluster) -> None:
    elsewhere = f"{GROUP.replace('karpstack-aks', 'demo')}/providers/Microsoft.Network/networkInterfaces/endpoint"
    put_interface(world, elsewhere)
    (finding,) = subscription.neighbours(seen(world, cluster))
    assert (finding.severity, "demo" in finding.what) == ("error", True)
    # It is no business of the stack's where the network is not.
    assert not list(subscription.neighbours(seen(world, cluster, made(("group", GROUP)))))
    with pytest.raises(ArmError, match="InUseSubnetCannotBeDeleted"):
        world.arm.delete(f"{VNET}/subnets/nodes", NETWORK)


def test_a_guest_in_the_stacks_group_goes_with_it(world: World, cluster: FakeCluster) -> None:
    identity = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/somebodys"
    world.arm.put(identity, IDENTITY, {"location": REGION})
    (finding,) = subscription.check_foreign_resources(seen(world, cluster))
    assert (finding.severity, "userAssignedIdentities somebodys" in finding.what) == ("warning", True)
    world.arm.delete(CLUSTER, AKS)
    world.arm.delete(GROUP, GROUPS)
    assert world.azure.arm.list(f"{GROUP.rpartition('/')[0]}", GROUPS)
    with pytest.raises(ArmError, match="ResourceGroupNotFound"):
        world.arm.get(identity, IDENTITY)


def test_where_nothing_says_the_subscription_the_cluster_alone_is_asked(cluster: FakeCluster) -> None:
    assert not checks(Subject(cluster, AZURE)).keys() & {"locks", "machines", "foreign resources in the group"}
