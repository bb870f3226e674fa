"""Values of what runs beside Karpenter on EKS, and its StorageClass. Defaults of the charts are not repeated.

All of it tolerates the system nodes' taint and keeps off nodes of Karpenter, for it must be there before these are and
stay until they are gone. What the API server calls is on the hosts' network: it reaches no pod of the overlay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .charts import SYSTEM_TAINT_KEY, Leaf, Values
from .proxy import NO_EGRESS, Egress, entries

#: Keeps pods off a node until the EBS CSI driver runs there, which lifts it (aws-ebs-csi-driver, docs/install.md).
EBS_CSI_STARTUP_TAINT: Final = {
    "key": "ebs.csi.aws.com/agent-not-ready",
    "effect": "NoExecute",
}
EBS_CSI_DRIVER: Final = "ebs.csi.aws.com"
#: Name of the StorageClass that is the cluster's default.
DEFAULT_STORAGE_CLASS: Final = "gp3"

#: The port of the metrics server: on the host's network the chart's own, 10250, is the kubelet's.
METRICS_SERVER_PORT: Final = 10251

_SYSTEM_NODES: Final[Values] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}]
        }
    }
}
_TOLERATIONS: Final = [{"key": SYSTEM_TAINT_KEY, "operator": "Exists"}]
#: Two pods with a port of the host never share a node: a new one comes when an old one has gone.
_ONE_BY_ONE: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}


def ebs_csi_driver(*, region: str, tags: Mapping[str, str], egress: Egress = NO_EGRESS) -> Values:
    """Configuration of the EKS add-on aws-ebs-csi-driver, which has the keys of the driver's chart.

    Its controller tolerates the taint by default, its node pods every taint.

    Args:
        region: Of the cluster. The driver would ask the instance metadata service, which pods cannot reach.
        tags: Of the volumes that the driver makes, and of their snapshots.
        egress: How its controller gets out; the pods on nodes ask the API server alone. `proxy` of the chart would tell
            the sidecars too, which have nothing to do outside.
    """
    controller: Values = {"region": region, "affinity": _SYSTEM_NODES, "extraVolumeTags": dict(tags)}
    if egress.pod_variables:
        controller["env"] = entries(egress.pod_variables)
    if egress.volumes:
        controller |= {"volumes": egress.volumes, "volumeMounts": egress.volume_mounts}
    return {"controller": controller}


def storage_class() -> dict[str, Any]:
    """The cluster's default StorageClass: encrypted gp3, made in the zone of the pod that waits for it.

    Without that wait a volume may be in a zone where the NodePools launch nothing, and its pod never starts.
    """
    return {
        "metadata": {
            "name": DEFAULT_STORAGE_CLASS,
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": EBS_CSI_DRIVER,
        # The account's own key for EBS encrypts, unless the account has chosen another as default.
        "parameters": {"type": "gp3", "encrypted": "true"},
        "volume_binding_mode": "WaitForFirstConsumer",
        "reclaim_policy": "Delete",
        "allow_volume_expansion": True,
    }


def metrics_server(*, replicas: int) -> Values:
    """Values of the metrics server's chart.

    Args:
        replicas: At most the number of system nodes: each has a port of its host.
    """
    return {
        "replicas": replicas,
        "hostNetwork": {"enabled": True},
        "containerPort": METRICS_SERVER_PORT,
        "tolerations": _TOLERATIONS,
        "affinity": _SYSTEM_NODES,
        "updateStrategy": _ONE_BY_ONE,
        "podDisruptionBudget": {"enabled": replicas > 1, "maxUnavailable": 1},
    }


def load_balancer_controller(
    *,
    cluster_name: Leaf,
    region: str,
    vpc_id: Leaf,
    service_account: str,
    replicas: int,
    isolated: bool,
    tags: Mapping[str, str],
    egress: Egress = NO_EGRESS,
) -> Values:
    """Values of the AWS Load Balancer Controller's chart.

    Its webhook for Services stays off. Called for each new one with failurePolicy Fail, it would stop the creation of
    every Service while the controller is down, that of Karpenter's chart included. So a Service says by itself that it
    is the controller's: `loadBalancerClass: service.k8s.aws/nlb`.

    Args:
        cluster_name: Name of the EKS cluster.
        region, vpc_id: Of the cluster; the controller would ask the instance metadata service for them.
        service_account: Name of the service account that the chart makes.
        replicas: At most the number of system nodes: each has a port of its host.
        isolated: Whether the controller reaches what has a VPC endpoint alone, which WAF has not (EKS's user guide,
            "Deploy private clusters with limited internet access").
        tags: Of the load balancers and of all that belongs to them.
        egress: How the controller gets out.
    """
    return {
        "clusterName": cluster_name,
        "region": region,
        "vpcId": vpc_id,
        "replicaCount": replicas,
        "serviceAccount": {"name": service_account},
        "hostNetwork": True,
        "tolerations": _TOLERATIONS,
        "affinity": _SYSTEM_NODES,
        "updateStrategy": _ONE_BY_ONE,
        "podDisruptionBudget": {"maxUnavailable": 1},
        "enableServiceMutatorWebhook": False,
        # Their annotations are ignored, and the rights for them not needed: the one costs thousands of dollars a month,
        # the other is no longer offered.
        "enableShield": False,
        "enableWaf": False,
        **({"enableWafv2": False} if isolated else {}),
        # Otherwise each upgrade draws a new certificate, which pods that are still there do not serve.
        "keepTLSSecret": True,
        "defaultTags": dict(tags),
        **({"env": egress.pod_variables} if egress.pod_variables else {}),
        **({"extraVolumes": egress.volumes, "extraVolumeMounts": egress.volume_mounts} if egress.volumes else {}),
    }
