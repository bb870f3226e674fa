"""Specs of Karpenter's objects, and whether the API server takes them: one table for our judge and for it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True)
class Case:
    """A spec of one kind on one cloud; `wrong` is where it is refused and a part of why, None if it is taken."""

    name: str
    cloud: str
    kind: str
    spec: dict[str, Any]
    wrong: tuple[str, str] | None = None

    @property
    def manifest(self) -> dict[str, Any]:
        """The object, named after the case."""
        return {
            "apiVersion": _VERSIONS[self.kind],
            "kind": self.kind,
            "metadata": {"name": f"verdict-{self.name}"},  # a stack has objects with names of its own
            "spec": self.spec,
        }


_VERSIONS = {
    "NodePool": "karpenter.sh/v1",
    "NodeOverlay": "karpenter.sh/v1alpha1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
    "AKSNodeClass": "karpenter.azure.com/v1beta1",
}

# In the forms that the documentation shows: karpenter.sh/docs/concepts/nodepools and /nodeclasses, and that of AKS.
_DOCUMENTED = """
aws NodePool everything:
  template:
    metadata:
      labels: {billing-team: my-team}
      annotations: {example.com/owner: my-team}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: [{key: example.com/special-taint, effect: NoSchedule}]
      startupTaints: [{key: example.com/another-taint, effect: NoSchedule}]
      expireAfter: 720h
      terminationGracePeriod: 48h
      requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r], minValues: 2}
        - {key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 5}
        - {key: karpenter.k8s.aws/instance-cpu, operator: In, values: ["4", "8", "16", "32"]}
        - {key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [nitro]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
        - {key: topology.kubernetes.io/zone, operator: In, values: [us-west-2a, us-west-2b]}
        - {key: kubernetes.io/arch, operator: In, values: [arm64, amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand, reserved]}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 1m
    budgets:
      - nodes: 10%
      - {schedule: "0 9 * * mon-fri", duration: 8h, nodes: "0"}
      - {nodes: "5", reasons: [Underutilized, Empty]}
  limits: {cpu: "1000", memory: 1000Gi}
  weight: 10
aws NodePool static:
  replicas: 3
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: []
  limits: {nodes: 5}
aws NodePool nulls:
  weight: null
  disruption: {consolidateAfter: 0s, budgets: null}
  template:
    metadata: {labels: null}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      taints: null
      requirements: [{key: kubernetes.io/arch, operator: Exists, values: null}]
aws EC2NodeClass documented-aws:
  kubelet:
    podsPerCore: 2
    maxPods: 20
    systemReserved: {cpu: 100m, memory: 100Mi, ephemeral-storage: 1Gi}
    kubeReserved: {cpu: 200m, memory: 100Mi, ephemeral-storage: 3Gi}
    evictionHard: {memory.available: 5%, nodefs.available: 10%, nodefs.inodesFree: 10%}
    evictionSoft: {memory.available: 500Mi}
    evictionSoftGracePeriod: {memory.available: 1m}
    evictionMaxPodGracePeriod: 60
    imageGCHighThresholdPercent: 85
    imageGCLowThresholdPercent: 80
    cpuCFSQuota: true
    clusterDNS: [10.0.1.100]
  subnetSelectorTerms:
    - tags: {karpenter.sh/discovery: my-cluster, environment: test}
    - id: subnet-09fa4a0a8f233a921
  securityGroupSelectorTerms:
    - tags: {karpenter.sh/discovery: my-cluster}
    - name: my-security-group
    - id: sg-063d7acfb4b06c82c
  role: KarpenterNodeRole-my-cluster
  amiSelectorTerms:
    - alias: al2023@v20240807
  tags: {team: team-a, app: team-a-app}
  instanceStorePolicy: RAID0
  userData: echo "Hello world"
  detailedMonitoring: true
  associatePublicIPAddress: true
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
  blockDeviceMappings:
    - deviceName: /dev/xvda
      rootVolume: true
      ebs: {volumeSize: 100Gi, volumeType: gp3, iops: 10000, encrypted: true, deleteOnTermination: true, throughput: 125}
aws EC2NodeClass custom-images:
  role: node
  amiFamily: AL2023
  amiSelectorTerms: [{tags: {karpenter.sh/discovery: my-cluster}}, {name: my-ami, owner: self}, {id: ami-123}]
  subnetSelectorTerms: [{tags: {Name: "*"}}]
  securityGroupSelectorTerms: [{tags: {Name: "*"}}]
aws NodeOverlay documented-overlay:
  weight: 10
  requirements:
    - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge]}
    - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
    - {key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: ["32"]}
  priceAdjustment: +10%
  capacity: {hugepages-2Mi: 100Mi, custom-device/gpu-slice: 4}
azure NodeOverlay azure-overlay: {requirements: [], price: "5.00"}
azure NodePool general-purpose:
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
    budgets: [{nodes: 100%}]
  template:
    metadata: {labels: {kubernetes.azure.com/ebpf-dataplane: cilium}}
    spec:
      nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
      expireAfter: Never
      startupTaints: [{key: node.cilium.io/agent-not-ready, effect: NoExecute, value: "true"}]
      requirements:
        - {key: kubernetes.io/os, operator: In, values: [linux]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: karpenter.azure.com/sku-family, operator: In, values: [D]}
        - {key: karpenter.azure.com/sku-cpu, operator: Lt, values: ["33"]}
azure AKSNodeClass documented-azure:
  imageFamily: AzureLinux
  osDiskSizeGB: 128
  maxPods: 110
  vnetSubnetID: /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/net/subnets/nodes
  tags: {team: platform}
  kubelet:
    cpuManagerPolicy: static
    cpuCFSQuota: true
    cpuCFSQuotaPeriod: 100ms
    imageGCHighThresholdPercent: 85
    imageGCLowThresholdPercent: 80
    topologyManagerPolicy: best-effort
    allowedUnsafeSysctls: [kernel.msg*]
    containerLogMaxSize: 50Mi
    containerLogMaxFiles: 5
    podPidsLimit: 4096
azure AKSNodeClass fips: {fipsMode: FIPS, imageFamily: AzureLinux}
azure AKSNodeClass empty: {}
"""  # noqa: E501  a subnet's identifier has no end


def _good(title: str, spec: dict[str, Any]) -> Case:
    cloud, kind, name = title.split()
    return Case(name, cloud, kind, spec)


_GOOD = [_good(title, spec) for title, spec in yaml.safe_load(_DOCUMENTED).items()]


def _bad(base: str, name: str, path: str, value: Any, why: str, at: str | None = None) -> Case:
    """A good case with one value changed (removed where it is `...`), and what is said of it, at `at` if not there.

    A slash in a key is written `~`.
    """
    good = next(case for case in _GOOD if case.name == base)
    spec = deepcopy(good.spec)
    *steps, last = [int(step) if step.isdigit() else step.replace("~", "/") for step in path.split("/")]
    place: Any = spec
    for step in steps:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return Case(name, good.cloud, good.kind, spec, (path.replace("~", "/") if at is None else at, why))


_REQUIREMENTS = "template/spec/requirements"
_BAD = [
    _bad("everything", "no-template", "template", ..., "is required"),
    _bad("everything", "no-requirements", _REQUIREMENTS, ..., "is required"),
    _bad("everything", "no-node-class", "template/spec/nodeClassRef/name", "", "name may not be empty"),
    _bad(
        "everything",
        "node-class-version",
        "template/spec/nodeClassRef/group",
        "karpenter.k8s.aws/v1",
        "a name without /",
    ),
    _bad("everything", "unknown-field", "template/spec/expireafter", "720h", "is no field here"),
    _bad("everything", "weight-too-large", "weight", 101, "maximum of 100"),
    _bad("everything", "weight-text", "weight", "10", "is not of type 'integer'"),
    _bad("everything", "weight-of-static", "replicas", 1, "'weight'", ""),
    _bad("static", "limits-of-static", "limits", {"cpu": 1}, "only 'limits.nodes'", ""),
    _bad("everything", "limit", "limits/cpu", "lots", "an amount like"),
    _bad("everything", "limit-list", "limits/cpu", [1], "is neither a whole number nor a text"),
    _bad("everything", "expire-days", "template/spec/expireAfter", "30d", "or Never"),
    _bad("everything", "expire-line-feed", "template/spec/expireAfter", "30h\n", "or Never"),
    _bad("everything", "budget-share", "disruption/budgets/0/nodes", "110%", "a share from"),
    _bad("everything", "budget-number", "disruption/budgets/0/nodes", 10, "is not of type 'string'"),
    _bad("everything", "budget-no-duration", "disruption/budgets/1/duration", ..., "'schedule'", "disruption/budgets"),
    _bad("everything", "budget-seconds", "disruption/budgets/1/duration", "30s", "hours and minutes"),
    _bad("everything", "budget-reason", "disruption/budgets/2/reasons/0", "Bored", "is none of"),
    _bad("everything", "budget-reason-twice", "disruption/budgets/2/reasons/1", "Underutilized", "is there twice"),
    _bad("everything", "policy", "disruption/consolidationPolicy", "Sometimes", "is none of"),
    _bad("everything", "operator", f"{_REQUIREMENTS}/0/operator", "Near", "is none of"),
    _bad("everything", "in-without-values", f"{_REQUIREMENTS}/2/values", [], "'In'", _REQUIREMENTS),
    _bad("everything", "gt-text", f"{_REQUIREMENTS}/4/values/0", "two", "'Gt'", _REQUIREMENTS),
    _bad("everything", "gt-two", f"{_REQUIREMENTS}/4/values", ["1", "2"], "'Gt'", _REQUIREMENTS),
    _bad("everything", "min-values-too-many", f"{_REQUIREMENTS}/0/minValues", 4, "minValues", _REQUIREMENTS),
    _bad("everything", "min-values-51", f"{_REQUIREMENTS}/1/minValues", 51, "maximum of 50"),
    _bad("everything", "restricted-domain", f"{_REQUIREMENTS}/3/key", "karpenter.sh/custom", "is restricted"),
    _bad("everything", "restricted-label", f"{_REQUIREMENTS}/3/key", "kubernetes.io/hostname", "is restricted"),
    _bad("everything", "restricted-aws", f"{_REQUIREMENTS}/3/key", "karpenter.k8s.aws/custom", "is restricted"),
    _bad(
        "everything",
        "label-restricted",
        "template/metadata/labels/karpenter.sh~nodepool",
        "x",
        "is restricted",
        "template/metadata/labels",
    ),
    _bad("everything", "label-number", "template/metadata/labels/team", 7, "is not of type 'string'"),
    _bad("everything", "taint-effect", "template/spec/taints/0/effect", "Evict", "is none of"),
    _bad("documented-aws", "role-and-profile", "instanceProfile", "x", "must specify exactly one of", ""),
    _bad("documented-aws", "no-role", "role", ..., "must specify exactly one of", ""),
    _bad("documented-aws", "no-images", "amiSelectorTerms", ..., "is required"),
    _bad("documented-aws", "alias", "amiSelectorTerms/0/alias", "al2023", "'alias' is improperly formatted"),
    _bad("documented-aws", "alias-family", "amiSelectorTerms/0/alias", "fedora@latest", "family is not supported"),
    _bad(
        "documented-aws",
        "alias-and-id",
        "amiSelectorTerms/0/id",
        "ami-1",
        "'alias' is mutually exclusive",
        "amiSelectorTerms",
    ),
    _bad("documented-aws", "family-of-alias", "amiFamily", "Bottlerocket", "'AL2023' or 'Custom'", ""),
    _bad("custom-images", "no-family", "amiFamily", ..., "amiFamily", ""),
    _bad("documented-aws", "no-subnets", "subnetSelectorTerms", [], "cannot be empty"),
    _bad(
        "documented-aws",
        "empty-tag",
        "subnetSelectorTerms/0/tags/environment",
        "",
        "empty tag",
        "subnetSelectorTerms/0/tags",
    ),
    _bad("documented-aws", "owned-tag", "tags/karpenter.sh~nodepool", "x", "restricted tag", "tags"),
    _bad("documented-aws", "kubelet-list", "kubelet", [], "is not of type 'object'"),
    _bad(
        "documented-aws",
        "two-roots",
        "blockDeviceMappings",
        [{"rootVolume": True, "ebs": {"volumeSize": "1Gi"}}] * 2,
        "rootVolume",
    ),
    _bad("documented-aws", "tokens", "metadataOptions/httpTokens", "never", "is none of"),
    _bad(
        "general-purpose", "restricted-azure", f"{_REQUIREMENTS}/2/key", "karpenter.azure.com/custom", "is restricted"
    ),
    _bad("general-purpose", "restricted-aks", f"{_REQUIREMENTS}/2/key", "kubernetes.azure.com/custom", "is restricted"),
    _bad(
        "general-purpose",
        "label-agentpool",
        "template/metadata/labels/agentpool",
        "x",
        "is restricted",
        "template/metadata/labels",
    ),
    _bad("documented-overlay", "two-prices", "price", "0.05", "cannot set both", ""),
    _bad("documented-overlay", "price-of-a-number", "priceAdjustment", 5, "is not of type 'string'"),
    _bad("documented-overlay", "share-above-all", "priceAdjustment", "-110%", "a signed change"),
    _bad("documented-overlay", "capacity-of-cpu", "capacity/cpu", 4, "invalid resource restricted", "capacity"),
    _bad("documented-overlay", "overlay-for-a-host", "requirements/0/key", "kubernetes.io/hostname", "is restricted"),
    _bad("documented-azure", "family", "imageFamily", "Fedora", "is none of"),
    _bad("documented-azure", "disk", "osDiskSizeGB", 29, "minimum of 30"),
    _bad("documented-azure", "fips-mode", "fipsMode", "Never", "is none of"),
    _bad("fips", "fips-ubuntu", "imageFamily", "Ubuntu2204", "FIPS", ""),
    _bad("documented-azure", "tag-name", "tags/a<b", "x", "must not contain", "tags"),
    _bad("documented-azure", "subnet", "vnetSubnetID", "subnet", "resource ID of a subnet"),
    _bad("documented-azure", "cpu-manager", "kubelet/cpuManagerPolicy", "dynamic", "is none of"),
]

CASES = [*_GOOD, *_BAD]
