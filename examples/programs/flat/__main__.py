"""An EKS cluster with Karpenter, in one file.

Rehearse it: karpstack up dev --program examples/programs/flat
"""

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

config = pulumi.Config()
name = f"shop-{pulumi.get_stack()}"
karpenter_version = "1.15.1"
zones = aws.get_availability_zones(state="available").names[:2]
account = aws.get_caller_identity().account_id

# Network
vpc = aws.ec2.Vpc("vpc", cidr_block="10.40.0.0/16", enable_dns_hostnames=True, tags={"Name": name})
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id)
public_routes = aws.ec2.RouteTable(
    "public", vpc_id=vpc.id, routes=[{"cidr_block": "0.0.0.0/0", "gateway_id": gateway.id}]
)
public, private = [], []
for i, zone in enumerate(zones):
    subnet = aws.ec2.Subnet(
        f"public-{i}",
        vpc_id=vpc.id,
        cidr_block=f"10.40.{i}.0/24",
        availability_zone=zone,
        map_public_ip_on_launch=True,
        tags={"kubernetes.io/role/elb": "1"},
    )
    aws.ec2.RouteTableAssociation(f"public-{i}", subnet_id=subnet.id, route_table_id=public_routes.id)
    public.append(subnet)
    private.append(
        aws.ec2.Subnet(
            f"private-{i}",
            vpc_id=vpc.id,
            cidr_block=f"10.40.{16 * (i + 1)}.0/20",
            availability_zone=zone,
            tags={"kubernetes.io/role/internal-elb": "1", "karpenter.sh/discovery": name},
        )
    )
nat = aws.ec2.NatGateway(
    "nat",
    subnet_id=public[0].id,
    allocation_id=aws.ec2.Eip("nat", domain="vpc").id,
    opts=pulumi.ResourceOptions(depends_on=[gateway]),
)
private_routes = aws.ec2.RouteTable(
    "private", vpc_id=vpc.id, routes=[{"cidr_block": "0.0.0.0/0", "nat_gateway_id": nat.id}]
)
associations = [
    aws.ec2.RouteTableAssociation(f"private-{i}", subnet_id=subnet.id, route_table_id=private_routes.id)
    for i, subnet in enumerate(private)
]

# Karpenter's nodes: all traffic among themselves, and out
node_group_rules = aws.ec2.SecurityGroup(
    "nodes",
    vpc_id=vpc.id,
    ingress=[{"protocol": "-1", "from_port": 0, "to_port": 0, "self": True}],
    egress=[{"protocol": "-1", "from_port": 0, "to_port": 0, "cidr_blocks": ["0.0.0.0/0"]}],
    tags={"karpenter.sh/discovery": name},
)


# Roles
def taken_by(service: str) -> str:
    """Return the trust policy of a role that an AWS service takes."""
    principals = [aws.iam.GetPolicyDocumentStatementPrincipalArgs(type="Service", identifiers=[service])]
    statement = aws.iam.GetPolicyDocumentStatementArgs(actions=["sts:AssumeRole"], principals=principals)
    return aws.iam.get_policy_document(statements=[statement]).json


cluster_role = aws.iam.Role("cluster", assume_role_policy=taken_by("eks.amazonaws.com"))
cluster_policy = aws.iam.RolePolicyAttachment(
    "cluster", role=cluster_role.name, policy_arn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
)
node_role = aws.iam.Role(
    "nodes",
    assume_role_policy=taken_by("ec2.amazonaws.com"),
    managed_policy_arns=[
        f"arn:aws:iam::aws:policy/{policy}"
        for policy in ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryReadOnly")
    ],
)

# Cluster
cluster = aws.eks.Cluster(
    "cluster",
    name=name,
    version="1.36",
    role_arn=cluster_role.arn,
    vpc_config={"subnet_ids": [subnet.id for subnet in (*public, *private)], "endpoint_private_access": True},
    access_config={"authentication_mode": "API_AND_CONFIG_MAP", "bootstrap_cluster_creator_admin_permissions": True},
    opts=pulumi.ResourceOptions(depends_on=[cluster_policy]),
)
aws.ec2.Tag(
    "cluster-security-group",
    resource_id=cluster.vpc_config.cluster_security_group_id,
    key="karpenter.sh/discovery",
    value=name,
)
aws.ec2.SecurityGroupRule(
    "nodes-to-cluster",
    type="ingress",
    security_group_id=cluster.vpc_config.cluster_security_group_id,
    source_security_group_id=node_group_rules.id,
    protocol="-1",
    from_port=0,
    to_port=0,
)
node_group = aws.eks.NodeGroup(
    "system",
    cluster_name=cluster.name,
    node_role_arn=node_role.arn,
    subnet_ids=[subnet.id for subnet in private],
    instance_types=["m5.large"],
    scaling_config={"desired_size": config.require_int("nodes"), "min_size": 1, "max_size": 3},
    opts=pulumi.ResourceOptions(depends_on=associations),
)

# Karpenter: its role, by the cluster's OIDC provider
issuer = cluster.identities[0].oidcs[0].issuer
oidc = aws.iam.OpenIdConnectProvider("cluster", url=issuer, client_id_lists=["sts.amazonaws.com"])
issuer_name = issuer.apply(lambda url: url.removeprefix("https://"))
karpenter_role = aws.iam.Role(
    "karpenter",
    assume_role_policy=aws.iam.get_policy_document_output(
        statements=[
            {
                "actions": ["sts:AssumeRoleWithWebIdentity"],
                "principals": [{"type": "Federated", "identifiers": [oidc.arn]}],
                "conditions": [
                    {
                        "test": "StringEquals",
                        "variable": pulumi.Output.concat(issuer_name, ":sub"),
                        "values": ["system:serviceaccount:karpenter:karpenter"],
                    },
                    {
                        "test": "StringEquals",
                        "variable": pulumi.Output.concat(issuer_name, ":aud"),
                        "values": ["sts.amazonaws.com"],
                    },
                ],
            }
        ]
    ).json,
)
karpenter_policy = aws.iam.RolePolicy(
    "karpenter",
    role=karpenter_role.name,
    policy=pulumi.Output.all(node_role.arn, cluster.arn).apply(
        lambda known: json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": [
                            "ec2:CreateFleet",
                            "ec2:CreateLaunchTemplate",
                            "ec2:CreateTags",
                            "ec2:DeleteLaunchTemplate",
                            "ec2:Describe*",
                            "ec2:RunInstances",
                            "ec2:TerminateInstances",
                            "iam:AddRoleToInstanceProfile",
                            "iam:CreateInstanceProfile",
                            "iam:DeleteInstanceProfile",
                            "iam:GetInstanceProfile",
                            "iam:ListInstanceProfiles",
                            "iam:RemoveRoleFromInstanceProfile",
                            "iam:TagInstanceProfile",
                            "pricing:GetProducts",
                            "ssm:GetParameter",
                        ],
                        "Resource": "*",
                    },
                    {"Effect": "Allow", "Action": "iam:PassRole", "Resource": known[0]},
                    {"Effect": "Allow", "Action": "eks:DescribeCluster", "Resource": known[1]},
                ],
            }
        )
    ),
)

kubeconfig = pulumi.Output.all(cluster.name, cluster.endpoint, cluster.certificate_authority.data).apply(
    lambda known: json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "eks",
            "contexts": [{"name": "eks", "context": {"cluster": "eks", "user": "eks"}}],
            "clusters": [{"name": "eks", "cluster": {"server": known[1], "certificate-authority-data": known[2]}}],
            "users": [
                {
                    "name": "eks",
                    "user": {
                        "exec": {
                            "apiVersion": "client.authentication.k8s.io/v1beta1",
                            "command": "aws",
                            "args": ["eks", "get-token", "--cluster-name", known[0]],
                        }
                    },
                }
            ],
        }
    )
)
provider = k8s.Provider("cluster", kubeconfig=kubeconfig, opts=pulumi.ResourceOptions(depends_on=[node_group]))
karpenter = k8s.helm.v3.Release(
    "karpenter",
    name="karpenter",
    namespace="karpenter",
    create_namespace=True,
    chart="oci://public.ecr.aws/karpenter/karpenter",
    version=karpenter_version,
    values={
        "settings": {"clusterName": cluster.name},
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": karpenter_role.arn}},
    },
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[karpenter_policy]),
)
node_class = k8s.apiextensions.CustomResource(
    "default",
    api_version="karpenter.k8s.aws/v1",
    kind="EC2NodeClass",
    metadata={"name": "default"},
    spec={
        "role": node_role.name,
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": name}}],
        "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": name}}],
    },
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[karpenter]),
)
k8s.apiextensions.CustomResource(
    "default-pool",
    api_version="karpenter.sh/v1",
    kind="NodePool",
    metadata={"name": "default"},
    spec={
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]},
                ],
            }
        },
        "limits": {"cpu": "100"},
        "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s"},
    },
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[node_class]),
)

pulumi.export("kubeconfig", kubeconfig)
pulumi.export("cluster", cluster.name)
pulumi.export("account", account)
