"""The cluster, its add-ons and a small group of system nodes."""

import json

import pulumi
import pulumi_aws as aws
from network import Network


def role(name: str, service: str, policies: tuple[str, ...], parent: pulumi.Resource, *actions: str) -> aws.iam.Role:
    """Make a role that an AWS service takes."""
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", *actions]}
    made = aws.iam.Role(
        name,
        assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    for policy in policies:
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy}",
            role=made.name,
            policy_arn=f"arn:aws:iam::aws:policy/{policy}",
            opts=pulumi.ResourceOptions(parent=made),
        )
    return made


class Cluster(pulumi.ComponentResource):
    """An EKS cluster with Pod Identity."""

    def __init__(self, name: str, network: Network, version: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("platform:eks:Cluster", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.network = network
        self.cluster = aws.eks.Cluster(
            name,
            name=name,
            version=version,
            role_arn=role(f"{name}-cluster", "eks.amazonaws.com", ("AmazonEKSClusterPolicy",), self).arn,
            bootstrap_self_managed_addons=False,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                subnet_ids=[subnet.id for subnet in network.private],
                endpoint_private_access=True,
                endpoint_public_access=True,
            ),
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode="API", bootstrap_cluster_creator_admin_permissions=True
            ),
            opts=child,
        )
        aws.ec2.Tag(
            name,
            resource_id=self.cluster.vpc_config.cluster_security_group_id,
            key="karpenter.sh/discovery",
            value=name,
            opts=child,
        )
        self.node_role = role(
            f"{name}-nodes",
            "ec2.amazonaws.com",
            ("AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"),
            self,
        )
        networking = [self._addon(name, addon) for addon in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")]
        nodes = aws.eks.NodeGroup(
            name,
            cluster_name=self.cluster.name,
            node_group_name="system",
            node_role_arn=self.node_role.arn,
            subnet_ids=[subnet.id for subnet in network.private],
            instance_types=["m5.large"],
            labels={"role": "system"},
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(desired_size=2, min_size=2, max_size=4),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*networking, *network.routes]),
        )
        self.ready = [nodes, self._addon(name, "coredns", nodes)]
        self.kubeconfig = pulumi.Output.json_dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": name,
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "clusters": [
                    {
                        "name": name,
                        "cluster": {
                            "server": self.cluster.endpoint,
                            "certificate-authority-data": self.cluster.certificate_authority.data,
                        },
                    }
                ],
                "users": [
                    {
                        "name": name,
                        "user": {
                            "exec": {
                                "apiVersion": "client.authentication.k8s.io/v1",
                                "interactiveMode": "Never",
                                "command": "aws",
                                "args": ["eks", "get-token", "--cluster-name", name],
                            }
                        },
                    }
                ],
            }
        )
        self.register_outputs({"kubeconfig": self.kubeconfig})

    def _addon(self, name: str, addon: str, *after: pulumi.Resource) -> aws.eks.Addon:
        return aws.eks.Addon(
            f"{name}-{addon}",
            cluster_name=self.cluster.name,
            addon_name=addon,
            resolve_conflicts_on_create="OVERWRITE",
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*after]),
        )
