"""Registers resources that break the rules of the group `group`; only ever previewed, never made."""

import json

import pulumi
import pulumi_aws as aws
import pulumi_azure_native as azure
import pulumi_kubernetes as kubernetes

from karpstack.components import versions

CONFIG = pulumi.Config()
GROUP = CONFIG.require("group")
TAGS = {"owner": "platform", "environment": "test", "cost-centre": "0"}
DISCOVERY = {"karpenter.sh/discovery": "nothing-carries-this"}
# Something of the cloud comes first, as in every environment: from it the pack knows the region.
good: pulumi.Resource
if GROUP.startswith("azure"):
    good = azure.resources.ResourceGroup("good", tags=TAGS)
else:
    good = aws.sqs.Queue("good", sqs_managed_sse_enabled=True, tags=TAGS)
provider = kubernetes.Provider(
    "kubernetes", kubeconfig=CONFIG.require_secret("kubeconfig"), opts=pulumi.ResourceOptions(depends_on=[good])
)
in_cluster = pulumi.ResourceOptions(provider=provider)


def document(**statement: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})


def release(name: str, chart: str, **properties: object) -> None:
    kubernetes.helm.v3.Release(name, chart=chart, **properties, opts=in_cluster)


def cilium(**values: object) -> None:
    repository = {"repo": versions.CILIUM_REPOSITORY}
    release("cilium", versions.CILIUM_CHART, version=versions.CILIUM, repository_opts=repository, values=values)


def custom(name: str, api_version: str, kind: str, spec: object) -> None:
    kubernetes.apiextensions.CustomResource(
        name, api_version=api_version, kind=kind, metadata={"name": name}, spec=spec, opts=in_cluster
    )


def node_pool(name: str, *requirements: object, node_class: str = "default", **spec: object) -> None:
    template = {
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": node_class},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}, *requirements],
            "startupTaints": [{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}],
        }
    }
    custom(name, "karpenter.sh/v1", "NodePool", {"limits": {"cpu": 10}, "template": template, **spec})


def node_class(**spec: object) -> None:
    custom(
        "default",
        "karpenter.k8s.aws/v1",
        "EC2NodeClass",
        {
            "amiSelectorTerms": [{"alias": "al2023@v20260714"}],
            "role": "nodes",
            "subnetSelectorTerms": [{"tags": DISCOVERY}],
            "securityGroupSelectorTerms": [{"tags": DISCOVERY}],
            "tags": TAGS,
            **spec,
        },
    )


def identity() -> None:
    aws.iam.Role("open", assume_role_policy=document(Principal="*", Action="sts:AssumeRole"), tags=TAGS)
    aws.iam.Policy("open", policy=document(Action=["iam:PassRole", "sqs:*"], Resource="*"), tags=TAGS)


def network() -> None:
    # A second dataplane is refused by the simulated account itself, before the other rules could be seen.
    aws.eks.Cluster(
        "open",
        role_arn="arn:aws:iam::123456789012:role/a",
        vpc_config={"subnet_ids": ["a"]},
        bootstrap_self_managed_addons=False,
        tags=TAGS,
    )
    aws.vpc.SecurityGroupIngressRule(
        "open", security_group_id="sg-1", ip_protocol="tcp", from_port=22, to_port=22, cidr_ipv4="0.0.0.0/0"
    )
    cilium(routingMode="native")


def node_pools() -> None:
    node_pool("boundless", limits={})
    node_pool("dear", limits={"cpu": 1000000})
    node_pool(
        "impossible",
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "no-such"], "minValues": 2},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["90"]},
    )


def node_classes() -> None:
    node_class(
        metadataOptions={"httpTokens": "optional"},
        blockDeviceMappings=[{"deviceName": "/dev/xvda", "ebs": {"encrypted": False}}],
        associatePublicIPAddress=True,
        amiSelectorTerms=[{"alias": "al2023@latest"}],
    )


def controller() -> None:
    on_linux = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_linux]}}
    values = {"replicas": 1, "affinity": {"nodeAffinity": required}}
    release("karpenter", versions.KARPENTER_AWS_CHART, values=values)


def data() -> None:
    aws.sqs.Queue("open", sqs_managed_sse_enabled=False)
    aws.sqs.QueuePolicy(
        "open",
        queue_url="https://sqs.us-east-1.amazonaws.com/1/a",
        policy=document(Principal="*", Action="sqs:*", Resource="*"),
    )


def stack() -> None:
    aws.ec2.Subnet("untagged", vpc_id="vpc-1", cidr_block="10.0.0.0/24", tags=TAGS)
    aws.ec2.Vpc("overlapped", cidr_block="10.244.0.0/20", tags=TAGS)
    node_class(kubelet={"maxPods": 110})
    families = ["c5", "m5", "r5", "c6i", "m6i", "r6i"]
    few = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": families}
    node_pool("orphan", few, node_class="missing", replicas=2, limits={"nodes": 2})
    node_pool("twin")
    node_pool("other-twin")
    resources = {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    values = {"controller": {"resources": resources}}
    release("karpenter", versions.KARPENTER_AWS_CHART, version=versions.KARPENTER_AWS, values=values)
    ipam = {"operator": {"clusterPoolIPv4PodCIDRList": ["10.244.0.0/16"], "clusterPoolIPv4MaskSize": 27}}
    cilium(kubeProxyReplacement=True, ipam=ipam)


SUBSCRIPTION = "/subscriptions/12345678-1234-1234-1234-123456789012"
OWNER = f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/8e3af657-a8ff-443c-a75c-2fe8c4bcb635"


def azure_identity() -> None:
    azure.managedidentity.FederatedIdentityCredential(
        "open",
        resource_name_="controller",
        resource_group_name="good",
        issuer="https://issuer.example/a",
        subject="system:serviceaccount:kube-system:*",
        audiences=["api://anybody"],
    )
    azure.authorization.RoleAssignment(
        "open",
        principal_id="11111111-1111-1111-1111-111111111111",
        principal_type="ServicePrincipal",
        role_definition_id=OWNER,
        scope=SUBSCRIPTION,
    )
    azure.managedidentity.UserAssignedIdentity("untagged", resource_group_name="good")


def azure_cluster() -> None:
    # Another dataplane is refused by the simulated subscription itself, before the rules could be seen.
    azure.containerservice.ManagedCluster(
        "open",
        resource_group_name="good",
        dns_prefix="open",
        service_principal_profile={"client_id": "11111111-1111-1111-1111-111111111111", "secret": "none"},
        network_profile={
            "network_plugin": "azure",
            "network_dataplane": "cilium",
            "network_policy": "calico",
            "pod_cidr": "10.224.0.0/16",
        },
        agent_pool_profiles=[{"name": "system", "enable_node_public_ip": True, "max_pods": 251}],
        tags=TAGS,
    )
    azure.network.NetworkSecurityGroup(
        "open",
        resource_group_name="good",
        security_rules=[
            {
                "name": "all",
                "access": "Allow",
                "direction": "Inbound",
                "priority": 100,
                "protocol": "*",
                "source_address_prefix": "*",
                "source_port_range": "*",
                "destination_address_prefix": "*",
                "destination_port_range": "22",
            }
        ],
        tags=TAGS,
    )
    azure.network.VirtualNetwork(
        "overlapped", resource_group_name="good", address_space={"address_prefixes": ["10.224.0.0/12"]}, tags=TAGS
    )


def nothing() -> None:
    """The exceptions of the pack's configuration are what is looked at."""


{
    "identity": identity,
    "network": network,
    "node pools": node_pools,
    "node classes": node_classes,
    "controller": controller,
    "data": data,
    "stack": stack,
    "azure identity": azure_identity,
    "azure cluster": azure_cluster,
    "exceptions": nothing,
}[GROUP]()
