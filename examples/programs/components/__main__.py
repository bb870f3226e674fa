"""An EKS cluster with Karpenter, of component resources.

Rehearse it: karpstack up staging --program examples/programs/components
"""

import pulumi
import pulumi_aws as aws
from cluster import Cluster
from karpenter import Karpenter
from network import Network

config = pulumi.Config()
name = f"{pulumi.get_project()}-{pulumi.get_stack()}"

tagged = aws.Provider(name, region=aws.config.region, default_tags={"tags": {"team": "platform"}})
inside = pulumi.ResourceOptions(providers=[tagged])

network = Network(name, cidr=config.require("cidr"), zones=config.require_int("zones"), opts=inside)
cluster = Cluster(name, network=network, version="1.36", opts=inside)
karpenter = Karpenter(name, cluster=cluster, version="1.15.1", opts=inside)
karpenter.node_pool("general", categories=["m", "c"], capacity_types=["spot", "on-demand"])

pulumi.export("kubeconfig", pulumi.Output.secret(cluster.kubeconfig))
