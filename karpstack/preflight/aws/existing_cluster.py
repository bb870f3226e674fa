"""What account and cluster say of an EKS cluster that is there; `cluster` judges it."""

from __future__ import annotations

from typing import Any, Final

from karpstack.components.documents.kubeconfig import eks as eks_kubeconfig
from karpstack.components.settings import ExistingEksSettings
from karpstack.components.settings import existing_cluster as judging
from karpstack.components.settings.existing_cluster import FoundCluster
from karpstack.components.settings.workloads import Workloads
from karpstack.components.workloads import eks as workloads

from . import existing_network
from .asking import Aws

CALL: Final = "eks:DescribeCluster"
_NOT_THERE: Final = ("ResourceNotFoundException",)


def find(aws: Aws, settings: ExistingEksSettings) -> FoundCluster | None:
    """What account and cluster say; None where there is no cluster of that name.

    Raises:
        NotAskedError: The account does not tell. Of the cluster itself `Workloads.refusal` says it.
    """
    answer = aws.find("eks", "DescribeCluster", _NOT_THERE, name=settings.cluster.existing)
    if answer is None:
        return None
    seen = answer["cluster"]
    vpc = seen["resourcesVpcConfig"]
    subnet_ids = settings.network.subnet_ids or _of_node_groups(aws, seen["name"])
    selection = judging.node_network(settings, vpc["vpcId"], subnet_ids)
    issuer = ((seen.get("identity") or {}).get("oidc") or {}).get("issuer", "")
    return FoundCluster(
        status=seen["status"],
        version=seen["version"],
        authentication_mode=(seen.get("accessConfig") or {}).get("authenticationMode", ""),
        auto_mode=bool((seen.get("computeConfig") or {}).get("enabled")),
        service_cidr=(seen.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr", ""),
        vpc_id=vpc["vpcId"],
        security_group_id=vpc.get("clusterSecurityGroupId", ""),
        subnet_ids=subnet_ids,
        has_provider=settings.karpenter.identity != "irsa" or _has_provider(aws, issuer),
        cni_role=_cni_role(aws, seen["name"]),
        network=existing_network.find(aws, selection, seen["name"]),
        workloads=_workloads(seen, settings) if seen["status"] == "ACTIVE" else Workloads(),
    )


def _workloads(seen: dict[str, Any], settings: ExistingEksSettings) -> Workloads:
    """What the cluster says itself, asked with the kubeconfig that the stack would use."""
    kubeconfig = eks_kubeconfig(
        cluster_name=seen["name"],
        region=settings.region,
        endpoint=seen["endpoint"],
        certificate_authority=seen["certificateAuthority"]["data"],
        profile=settings.profile,
        role_arn=next((role.role_arn for role in settings.assume_roles), ""),
    )
    return workloads.read_workloads(kubeconfig, settings.name)


def _of_node_groups(aws: Aws, name: str) -> list[str]:
    """Subnets of the managed node groups: where nodes of the cluster are known to live."""
    groups = aws.all("eks", "ListNodegroups", "nodegroups", clusterName=name)
    found = (aws.ask("eks", "DescribeNodegroup", clusterName=name, nodegroupName=one)["nodegroup"] for one in groups)
    return sorted({subnet for group in found for subnet in group["subnets"]})


def _has_provider(aws: Aws, issuer: str) -> bool:
    # The provider's ARN ends with the issuer's URL, without its scheme.
    name = issuer.partition("://")[2]
    listed = aws.ask("iam", "ListOpenIDConnectProviders").get("OpenIDConnectProviderList", ())
    return any(one["Arn"].partition(":oidc-provider/")[2] == name for one in listed)


def _cni_role(aws: Aws, name: str) -> bool:
    """Whether the VPC CNI, as an add-on of EKS, has a role of its own."""
    answer = aws.find("eks", "DescribeAddon", _NOT_THERE, clusterName=name, addonName="vpc-cni") or {}
    addon = answer.get("addon") or {}
    return bool(addon.get("serviceAccountRoleArn") or addon.get("podIdentityAssociations"))
