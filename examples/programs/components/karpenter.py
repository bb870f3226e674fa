"""Karpenter: role, interruption queue, charts, and NodePools."""

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
from cluster import Cluster, role

CHARTS = "oci://public.ecr.aws/karpenter"
EVENTS = {
    "spot-interruption": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state-change": ("aws.ec2", "EC2 Instance State-change Notification"),
}


class Karpenter(pulumi.ComponentResource):
    """Karpenter on a cluster, with Pod Identity and a queue for interruptions."""

    def __init__(self, name: str, cluster: Cluster, version: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("platform:eks:Karpenter", name, None, opts)
        self.name, self.cluster = name, cluster
        queue = self._queue()
        identity = self._identity(queue)
        self.provider = kubernetes.Provider(
            name,
            kubeconfig=cluster.kubeconfig,
            opts=pulumi.ResourceOptions(parent=self, depends_on=cluster.ready),
        )
        inside = pulumi.ResourceOptions(parent=self, provider=self.provider)
        definitions = kubernetes.helm.v3.Release(
            f"{name}-karpenter-crd",
            name="karpenter-crd",
            namespace="kube-system",
            chart=f"{CHARTS}/karpenter-crd",
            version=version,
            opts=inside,
        )
        self.release = kubernetes.helm.v3.Release(
            f"{name}-karpenter",
            name="karpenter",
            namespace="kube-system",
            chart=f"{CHARTS}/karpenter",
            version=version,
            skip_crds=True,
            values={
                "settings": {
                    "clusterName": cluster.cluster.name,
                    "interruptionQueue": queue.name,
                    "featureGates": {"spotToSpotConsolidation": True},
                },
                "controller": {"resources": {"requests": {"cpu": "500m", "memory": "512Mi"}}},
            },
            opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[definitions, *identity])),
        )
        self.node_class = kubernetes.apiextensions.CustomResource(
            f"{name}-default",
            api_version="karpenter.k8s.aws/v1",
            kind="EC2NodeClass",
            metadata={"name": "default"},
            spec={
                "role": cluster.node_role.name,
                "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": cluster.network.discovery}],
                "securityGroupSelectorTerms": [{"tags": cluster.network.discovery}],
            },
            opts=pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(depends_on=[self.release])),
        )
        self.register_outputs({})

    def node_pool(self, pool: str, categories: list[str], capacity_types: list[str]) -> None:
        """Make a NodePool."""
        kubernetes.apiextensions.CustomResource(
            f"{self.name}-{pool}",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={"name": pool},
            spec={
                "template": {
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                        "requirements": [
                            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
                            {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": categories},
                        ],
                        "expireAfter": "720h",
                    }
                },
                "limits": {"cpu": "200"},
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
            },
            opts=pulumi.ResourceOptions(parent=self, provider=self.provider, depends_on=[self.node_class]),
        )

    def _queue(self) -> aws.sqs.Queue:
        child = pulumi.ResourceOptions(parent=self)
        queue = aws.sqs.Queue(self.name, name=self.name, message_retention_seconds=300, opts=child)
        aws.sqs.QueuePolicy(
            self.name,
            queue_url=queue.url,
            policy=pulumi.Output.json_dumps(
                {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Principal": {"Service": "events.amazonaws.com"},
                            "Action": "sqs:SendMessage",
                            "Resource": queue.arn,
                        }
                    ],
                }
            ),
            opts=child,
        )
        for event, (source, detail) in EVENTS.items():
            rule = aws.cloudwatch.EventRule(
                f"{self.name}-{event}",
                event_pattern=json.dumps({"source": [source], "detail-type": [detail]}),
                opts=child,
            )
            aws.cloudwatch.EventTarget(f"{self.name}-{event}", rule=rule.name, arn=queue.arn, opts=child)
        return queue

    def _identity(self, queue: aws.sqs.Queue) -> list[pulumi.Resource]:
        child = pulumi.ResourceOptions(parent=self)
        taken = role(f"{self.name}-karpenter", "pods.eks.amazonaws.com", (), self, "sts:TagSession")
        policy = aws.iam.Policy(
            f"{self.name}-karpenter",
            policy=pulumi.Output.json_dumps(
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
                                "iam:*InstanceProfile*",
                                "pricing:GetProducts",
                                "ssm:GetParameter",
                            ],
                            "Resource": "*",
                        },
                        {"Effect": "Allow", "Action": "iam:PassRole", "Resource": self.cluster.node_role.arn},
                        {"Effect": "Allow", "Action": "eks:DescribeCluster", "Resource": self.cluster.cluster.arn},
                        {
                            "Effect": "Allow",
                            "Action": ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                            "Resource": queue.arn,
                        },
                    ],
                }
            ),
            opts=child,
        )
        attached = aws.iam.RolePolicyAttachment(
            f"{self.name}-karpenter", role=taken.name, policy_arn=policy.arn, opts=child
        )
        association = aws.eks.PodIdentityAssociation(
            f"{self.name}-karpenter",
            cluster_name=self.cluster.cluster.name,
            namespace="kube-system",
            service_account="karpenter",
            role_arn=taken.arn,
            opts=child,
        )
        return [attached, association]
