"""What EKS's add-ons run in a cluster, and what must hold for that to work.

CoreDNS and the Pod Identity agent are manifests beside this file. The EBS CSI driver is its own chart of the engine
set, rendered by Helm with the configuration of the add-on: EKS builds the add-on from the same chart, and takes the
keys of its schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jsonschema
import yaml

from karpstack.rehearsal.aws.cloud import ROLE_ANNOTATION

if TYPE_CHECKING:
    from karpstack.rehearsal.cluster.charts import Chart
    from karpstack.rehearsal.cluster.control_plane import Cluster

NAMESPACE: Final = "kube-system"

_FOLDER: Final = Path(__file__).with_name("addons")
# EKS takes JSON and YAML; the program says JSON.
_NOT_READABLE: Final = "ConfigurationValue provided in request is not supported: it is no JSON object"
_NOT_VALID: Final = (
    "ConfigurationValue provided in request is not supported: Json schema validation failed with error: [{errors}]"
)
_UNDEFINED: Final = "{path}: is not defined in the schema and the schema does not allow additional properties"


@dataclass(frozen=True)
class Need:
    """What an add-on's pods must be allowed to do with the role of their service account, or they crash."""

    action: str
    resource: str
    context: Mapping[str, str]


@dataclass(frozen=True)
class Workload:
    """An add-on's workload.

    Attributes:
        awaited: Kind and name of what must become available in kube-system.
        service_account: Whose pods can have a role of their own (`serviceAccountRoleArn`).
        chart: Its chart, where it is one: name, version and repository, as `rehearsal.cluster.charts` knows it.
        need: What its pods need of IAM.
    """

    awaited: tuple[tuple[str, str], ...]
    service_account: str = ""
    chart: tuple[str, str, str] | None = None
    need: Need | None = None


WORKLOADS: Final[Mapping[str, Workload]] = {
    "coredns": Workload((("Deployment", "coredns"),)),
    "eks-pod-identity-agent": Workload((("DaemonSet", "eks-pod-identity-agent"),)),
    "kube-proxy": Workload((("DaemonSet", "kube-proxy"),)),
    "vpc-cni": Workload((("DaemonSet", "aws-node"),), "aws-node"),
    "aws-ebs-csi-driver": Workload(
        (("Deployment", "ebs-csi-controller"), ("DaemonSet", "ebs-csi-node")),
        "ebs-csi-controller-sa",
        ("aws-ebs-csi-driver", "2.62.0", "https://kubernetes-sigs.github.io/aws-ebs-csi-driver"),
        Need(
            "ec2:CreateVolume",
            "arn:aws:ec2:us-east-1:123456789012:volume/*",
            {"aws:RequestTag/ebs.csi.aws.com/cluster": "true"},
        ),
    ),
}


def refusal(addon: str, values: str, running: Cluster) -> str:
    """What EKS says to a configuration that it does not take; empty to one that it does, and to none."""
    if not values:
        return ""
    try:
        configuration = json.loads(values)
    except json.JSONDecodeError:
        configuration = None
    if not isinstance(configuration, dict):
        return _NOT_READABLE
    chart = _chart(addon, running)
    if chart is None:
        return f"the rehearsal knows no configuration of the add-on {addon}; leave it out of what is rehearsed"
    schema = json.loads((chart.folder / "values.schema.json").read_text(encoding="utf-8"))
    errors = [_said(error) for error in jsonschema.Draft201909Validator(schema).iter_errors(configuration)]
    return _NOT_VALID.format(errors=", ".join(sorted(errors))) if errors else ""


def manifests(addon: str, values: str, running: Cluster, dns: str, role: str = "") -> list[dict[str, Any]]:
    """What EKS applies.

    Args:
        addon: Name of the add-on.
        values: Its configuration, or nothing.
        running: The cluster.
        dns: Address of the cluster's DNS, which EKS prescribes.
        role: ARN of the role of its service account, which EKS writes there.
    """
    chart = _chart(addon, running)
    if chart is not None:
        made = running.releases.render(addon, NAMESPACE, chart, json.loads(values) if values else {})
    else:
        made = [manifest for manifest in yaml.load_all(_text(addon), yaml.CSafeLoader) if manifest]
    for manifest in made:
        if manifest["kind"] == "Service" and chart is None:
            manifest["spec"]["clusterIP"] = dns
        metadata = manifest["metadata"]
        if role and (manifest["kind"], metadata["name"]) == ("ServiceAccount", WORKLOADS[addon].service_account):
            metadata["annotations"] = {**(metadata.get("annotations") or {}), ROLE_ANNOTATION: role}
    return made


def _chart(addon: str, running: Cluster) -> Chart | None:
    chart = WORKLOADS[addon].chart
    return running.charts.find(*chart) if chart else None


def _said(error: jsonschema.ValidationError) -> str:
    """An error in the words of the validator that EKS has."""
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        unknown = sorted(set(error.instance) - set(error.schema.get("properties", {})))
        return ", ".join(_UNDEFINED.format(path=f"{error.json_path}.{name}") for name in unknown)
    return f"{error.json_path}: {error.message}"


@cache
def _text(addon: str) -> str:
    return (_FOLDER / f"{addon}.yaml").read_text()
