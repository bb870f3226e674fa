"""An EKS cluster with Karpenter, of component resources.

Rehearse it: karpstack up staging --program examples/programs/components
"""

import pulumi
from cluster import Cluster
from karpenter import Karpenter
from network import Network

config = pulumi.Config()
name = f"{pulumi.get_project()}-{pulumi.get_stack()}"

network = Network(name, cidr=config.require("cidr"), zones=config.require_int("zones"))
cluster = Cluster(name, network=network, version="1.36")
karpenter = Karpenter(name, cluster=cluster, version="1.15.1")
karpenter.node_pool("general", categories=["m", "c"], capacity_types=["spot", "on-demand"])

pulumi.export("kubeconfig", pulumi.Output.secret(cluster.kubeconfig))
