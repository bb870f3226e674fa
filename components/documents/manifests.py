"""Node class, NodePool and NodeOverlay manifests: the user's own spec plus what the environment implies.

A spec is Karpenter's, whole and unchanged, so that an example from its documentation can be pasted in. What
is added is what can only be right in one way here. Nothing is validated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final, NamedTuple

Manifest = dict[str, Any]
Spec = Mapping[str, Any]


class NodeClassKind(NamedTuple):
    """The API of a cloud's node classes."""

    group: str
    version: str
    kind: str

    @property
    def path(self) -> str:
        """Of all its objects, in the API."""
        return f"/apis/{self.group}/{self.version}/{plural(self.kind)}"


EC2_NODE_CLASS: Final = NodeClassKind("karpenter.k8s.aws", "v1", "EC2NodeClass")
AKS_NODE_CLASS: Final = NodeClassKind("karpenter.azure.com", "v1beta1", "AKSNodeClass")
#: The node class that a NodePool gets when it names none.
DEFAULT_NODE_CLASS: Final = "default"

#: Addresses of the DNS proxy that AKS puts on nodes.
LOCAL_DNS: Final = "169.254.10.0/24"

#: Keeps pods off a node until Cilium runs there. Undeclared, Cilium's operator adds the taint by itself, and
#: Karpenter, which did not expect it, launches redundant nodes.
CILIUM_STARTUP_TAINT: Final = {
    "key": "node.cilium.io/agent-not-ready",
    "value": "true",
    "effect": "NoExecute",
}

#: Without it Karpenter does not count Cilium's DaemonSet on AKS, and packs nodes too full.
AKS_DATAPLANE_LABEL: Final = {"kubernetes.azure.com/ebpf-dataplane": "cilium"}

#: Kubernetes' own default. Karpenter's depends on network interfaces, which hand out no pod addresses here.
DEFAULT_MAX_PODS: Final = 110


def ec2_node_class(
    name: str,
    spec: Spec,
    *,
    role: str,
    subnets: Sequence[Spec],
    security_groups: Sequence[Spec],
    tags: Mapping[str, str],
    overlay: bool = True,
    makes_profile: bool = True,
    user_data: str | None = None,
) -> Manifest:
    """An EC2NodeClass manifest.

    Args:
        name: Name of the object.
        spec: The user's EC2NodeClass spec. Selector terms, maxPods and tags of its own stay as they are.
        role: Name of the node role. It is always set: the controller may pass no other role.
        subnets: Terms by which subnets are found where the spec selects none: `[{"id": "subnet-..."}]`.
        security_groups: The same for security groups.
        tags: The environment's tags; the spec's own win.
        overlay: Whether pods' addresses are an overlay network's. If they are those of network interfaces, Karpenter
            knows best how many there are.
        makes_profile: Whether Karpenter makes the instance profile, for which it asks IAM; if not, there is one of the
            role's name.
        user_data: The spec's own with what the environment adds; None where there is neither.
    """
    completed = deepcopy(dict(spec))
    if user_data is not None:
        completed["userData"] = user_data
    completed["role" if makes_profile else "instanceProfile"] = role
    completed.setdefault("subnetSelectorTerms", deepcopy(list(subnets)))
    completed.setdefault("securityGroupSelectorTerms", deepcopy(list(security_groups)))
    if overlay:
        kubelet = {"maxPods": DEFAULT_MAX_PODS, **(completed.get("kubelet") or {})}
        # `maxPods: null` leaves it to Karpenter after all.
        given = {key: value for key, value in kubelet.items() if value is not None}
        # Where the last field of an empty one is removed, the API server takes it for null, and refuses that.
        completed.pop("kubelet", None)
        if given:
            completed["kubelet"] = given
    completed["tags"] = {**tags, **(completed.get("tags") or {})}
    return _node_class(EC2_NODE_CLASS, name, completed)


def aks_node_class(name: str, spec: Spec, *, tags: Mapping[str, str]) -> Manifest:
    """An AKSNodeClass manifest.

    The subnet is not set: Karpenter takes the cluster's own, the only one that it may join.

    Args:
        name: Name of the object.
        spec: The user's AKSNodeClass spec.
        tags: The environment's tags; the spec's own win.
    """
    completed = deepcopy(dict(spec))
    completed["tags"] = {**tags, **(completed.get("tags") or {})}
    return _node_class(AKS_NODE_CLASS, name, completed)


def default_deny(*, local_dns: bool = False) -> Manifest:
    """A CiliumClusterwideNetworkPolicy (cilium.io/v2), by the arguments of a custom resource.

    An empty rule selects nobody; that there is one makes all else refused. Whoever is selected by a policy in a
    direction may do there only what some policy allows. What the kubelet asks pods of its own node always passes, and
    pods on the host's network are not pods to Cilium.

    Args:
        local_dns: Whether AKS may put a DNS proxy on each node, as it does from Kubernetes 1.37 on. Both rules are
            needed: learn.microsoft.com/azure/aks/localdns-custom.
    """
    dns = {"matchLabels": {"io.kubernetes.pod.namespace": "kube-system", "k8s-app": "kube-dns"}}
    ports = [{"port": "53", "protocol": protocol} for protocol in ("UDP", "TCP")]
    servers: list[dict[str, Any]] = [{"toEndpoints": [dns]}]
    if local_dns:
        servers += [{"toCIDR": [LOCAL_DNS]}, {"toEntities": ["host"]}]
    return {
        "api_version": "cilium.io/v2",
        "kind": "CiliumClusterwideNetworkPolicy",
        "metadata": {"name": "default-deny"},
        "spec": {
            "description": "Outside kube-system nothing but DNS, unless another policy allows it",
            "endpointSelector": {
                "matchExpressions": [
                    {"key": "io.kubernetes.pod.namespace", "operator": "NotIn", "values": ["kube-system"]}
                ]
            },
            "ingress": [{}],
            "egress": [{**server, "toPorts": [{"ports": ports}]} for server in servers],
        },
    }


def service_monitor(name: str, namespace: str) -> Manifest:
    """A ServiceMonitor (monitoring.coreos.com/v1) of a release of Karpenter's chart, by the same arguments.

    The chart has one too, and leaves it out without a word where its kind is not known yet, for good.
    """
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name}
    return {
        "api_version": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "namespaceSelector": {"matchNames": [namespace]},
            "selector": {"matchLabels": labels},
            "endpoints": [{"port": "http-metrics", "path": "/metrics"}],
        },
    }


def plural(kind: str) -> str:
    """What the API calls the objects of one of Karpenter's kinds."""
    return kind.lower() + ("es" if kind.endswith("s") else "s")


def max_pods(spec: Spec) -> Any:
    """How many pods a node of this node class takes: what `ec2_node_class` will say."""
    return (spec.get("kubelet") or {}).get("maxPods", DEFAULT_MAX_PODS)


def node_pool(
    name: str,
    spec: Spec,
    *,
    node_class: NodeClassKind,
    labels: Mapping[str, str] | None = None,
    startup_taints: Sequence[Spec] = (CILIUM_STARTUP_TAINT,),
) -> Manifest:
    """A NodePool manifest (karpenter.sh/v1).

    Args:
        name: Name of the object.
        spec: The user's NodePool spec. Its nodeClassRef may be absent or hold a name only.
        node_class: The cloud's node class.
        labels: Labels that every node needs here; the spec's own win.
        startup_taints: Taints that something lifts when it is ready on the node.
    """
    completed = deepcopy(dict(spec))
    template = completed["template"] = dict(completed.get("template") or {})
    if labels:
        metadata = template["metadata"] = dict(template.get("metadata") or {})
        metadata["labels"] = {**labels, **(metadata.get("labels") or {})}
    node = template["spec"] = dict(template.get("spec") or {})
    node["nodeClassRef"] = {
        "group": node_class.group,
        "kind": node_class.kind,
        "name": DEFAULT_NODE_CLASS,
        **(node.get("nodeClassRef") or {}),
    }
    node.setdefault("requirements", [])
    own = list(node.get("startupTaints") or [])
    # One with another effect is the user's choice and works as well.
    keys = {taint.get("key") for taint in own}
    if all_taints := [*own, *(dict(taint) for taint in startup_taints if taint["key"] not in keys)]:
        node["startupTaints"] = all_taints
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": completed,
    }


def node_overlay(name: str, spec: Spec) -> Manifest:
    """A NodeOverlay manifest (karpenter.sh/v1alpha1)."""
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": name},
        "spec": deepcopy(dict(spec)),
    }


def node_class_name(spec: Spec) -> str:
    """Name of the node class that a NodePool refers to: what `node_pool` will say."""
    return str((node_template(spec).get("nodeClassRef") or {}).get("name", DEFAULT_NODE_CLASS))


def node_template(spec: Spec) -> Mapping[str, Any]:
    """What a NodePool says of its nodes: `template.spec`, empty where it is missing."""
    return (spec.get("template") or {}).get("spec") or {}


def _node_class(kind: NodeClassKind, name: str, spec: Manifest) -> Manifest:
    return {
        "apiVersion": f"{kind.group}/{kind.version}",
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
