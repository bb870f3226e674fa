"""Images that the charts of a stack run, and how they are taken from a mirror of their registry.

A mirror keeps paths, tags and digests: `quay.io/cilium/cilium` with the prefix `registry.example.com/quay` is
`registry.example.com/quay/cilium/cilium`, as a pull-through cache of ECR, Harbor or Artifactory has it. What a chart
pins by digest stays pinned. Listed are those that run with the values of this program; EKS's own add-ons come from the
region's ECR, and nodes' images have what they start with in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Where each image stands in a chart's values, as `operator.image`, and its repository.
Images = Mapping[str, str]

CILIUM: Final[Images] = {
    "image": "quay.io/cilium/cilium",
    "envoy.image": "quay.io/cilium/cilium-envoy",
    "operator.image": "quay.io/cilium/operator",
    "hubble.relay.image": "quay.io/cilium/hubble-relay",
}
KARPENTER_AWS: Final[Images] = {"controller.image": "public.ecr.aws/karpenter/controller"}
KARPENTER_AZURE: Final[Images] = {"controller.image": "mcr.microsoft.com/aks/karpenter/controller"}
METRICS_SERVER: Final[Images] = {"image": "registry.k8s.io/metrics-server/metrics-server"}
LOAD_BALANCER_CONTROLLER: Final[Images] = {"image": "public.ecr.aws/eks/aws-load-balancer-controller"}


def registries(*charts: Images) -> tuple[str, ...]:
    """Registries of the charts' images, each once."""
    return tuple(sorted({name.partition("/")[0] for images in charts for name in images.values()}))


def mirrored(values: Mapping[str, Any], images: Images, mirrors: Mapping[str, str]) -> dict[str, Any]:
    """A chart's values with the repositories of its images in mirrors.

    Args:
        values: The values otherwise; not changed.
        images: The chart's images.
        mirrors: What stands in place of a registry: `{"quay.io": "registry.example.com/quay"}`.
    """
    changed = _copy_maps(values)
    for place, name in images.items():
        registry, _, path = name.partition("/")
        if registry in mirrors:
            at = changed
            for step in place.split("."):
                at = at.setdefault(step, {})
            at["repository"] = f"{mirrors[registry]}/{path}"
    return changed


def _copy_maps(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the maps, but not their values: outputs cannot be copied."""
    return {key: _copy_maps(value) if isinstance(value, Mapping) else value for key, value in values.items()}
