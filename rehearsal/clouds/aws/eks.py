"""EKS beyond moto: add-ons, access entries, access policies, pod identity, and a cluster that tells the truth.

`Eks` has the operations that moto lacks, with boto3's names, parameters and answers, and raises botocore's
ClientError; they are on the wire as well, so `Account.client("eks")` has all of them. Changes in moto:

- CreateCluster checks role and subnets, makes the cluster security group and the control plane's network
  interfaces (both real in EC2), remembers the access configuration, and makes the creator an administrator unless
  told not to. DeleteCluster takes all of it away.
- CreateNodegroup checks the role, launches the nodes' instances with an instance profile of its own, and makes the
  access entry of the role if there is none; changing the scaling changes the instances; DeleteNodegroup terminates
  them and leaves the access entry, as EKS does.
- DescribeCluster gives the endpoint, certificate authority and issuer of the real control plane.

Absent: Fargate, EKS Auto Mode, identity provider configurations, cluster insights, upgrades of a cluster's version.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from rehearsal.clouds.aws import policies
from rehearsal.clouds.aws.errors import answer, refusal
from rehearsal.clouds.aws.images import Image
from rehearsal.clouds.aws.patching import Patches
from rehearsal.clouds.aws.roles import Roles

#: Made-up default versions of the add-ons that exist here.
ADDONS = {"coredns": "v1.13.2-eksbuild.1", "eks-pod-identity-agent": "v1.3.10-eksbuild.2",
          "kube-proxy": "v1.36.0-eksbuild.2", "vpc-cni": "v1.21.1-eksbuild.1", "metrics-server": "v0.8.0-eksbuild.5",
          "aws-ebs-csi-driver": "v1.55.0-eksbuild.1", "eks-node-monitoring-agent": "v1.5.0-eksbuild.1"}
POD_IDENTITY_PRINCIPAL = "pods.eks.amazonaws.com"
POD_IDENTITY_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
NODE_ENTRY_TYPES = frozenset({"EC2_LINUX", "EC2", "HYBRID_LINUX"})

_ACCESS_POLICIES = frozenset(
    f"arn:aws:eks::aws:cluster-access-policy/{name}" for name in (
        "AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy",
        "AmazonEKSAdminViewPolicy", "AmazonEKSSecretReaderPolicy", "AmazonEKSAutoNodePolicy"))
_LETTERS = string.ascii_lowercase + string.digits
_CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_ENTRY_TYPES = frozenset({"STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX"})
_ARCHITECTURES = {"AL2023_x86_64_STANDARD": "x86_64", "AL2023_ARM_64_STANDARD": "arm64",
                  "BOTTLEROCKET_x86_64": "x86_64", "BOTTLEROCKET_ARM_64": "arm64"}

_NO_CLUSTER = "No cluster found for name: {name}."
_BAD_ROLE = ("Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not "
             "correct")
_NO_SUBNET = "The subnet ID '{id}' does not exist (Service: AmazonEC2; Status Code: 400; Error Code: " \
             "InvalidSubnetID.NotFound)"
_ONE_ZONE = "Subnets specified must be in at least two different AZs"
_TWO_NETWORKS = "Subnets specified must be in the same VPC"
_BAD_MODE = ("The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
             "operation.")
_ENTRY_EXISTS = "The specified access entry resource is already in use on this cluster."
_NO_ENTRY = ("The specified principalArn could not be found. You can view your available access entries with "
             "'list-access-entries'.")
_BAD_PRINCIPAL = "The specified principalArn is invalid: invalid principal."
_BAD_GROUP = "The kubernetes group name {name} is invalid, it cannot start with system:"
_NODE_GROUPS = "The type {type} does not take kubernetesGroups or username."
_BAD_TYPE = "The specified access entry type {type} is not supported"
_NODE_POLICY = "Access policies cannot be associated with an access entry of type {type}."
_BAD_POLICY = "The policyArn parameter format is not valid"
_NO_POLICY = "The specified policyArn is not associated with the specified principalArn."
_ASSOCIATION_EXISTS = "Association already exists: {id}"
_NO_ASSOCIATION = "No association found for associationId: {id}"
_NO_ROLE = "Role provided in the request does not exist."
_BAD_TRUST = "Trust policy of the role provided is invalid: {reason}"
_NO_ADDON = "No addon: {name} found in cluster: {cluster}"
_ADDON_EXISTS = "Addon already exists."
_UNKNOWN_ADDON = "Addon {name} specified is not supported in {version} kubernetes version"
_BAD_NODE_ROLE = ("The provided role doesn't have the Amazon EKS Managed Policies associated with it or does not trust "
                  "ec2.amazonaws.com: {arn}")
_NO_IMAGE_TYPE = "The rehearsal launches managed nodes of the types {known}, not {type}"


@dataclass
class _Extra:
    """What EKS knows about a cluster beyond moto."""

    addons: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    associations: dict[str, dict[str, Any]] = field(default_factory=dict)
    role_ids: dict[str, str] = field(default_factory=dict)
    interfaces: list[str] = field(default_factory=list)
    nodes: dict[str, list[str]] = field(default_factory=dict)


class Eks:
    """The account's EKS, shared by all threads."""

    #: Operations that moto has not: their method here is the snake_case name.
    OPERATIONS = (
        "CreateAddon", "DescribeAddon", "UpdateAddon", "DeleteAddon", "ListAddons",
        "CreateAccessEntry", "DescribeAccessEntry", "UpdateAccessEntry", "DeleteAccessEntry", "ListAccessEntries",
        "AssociateAccessPolicy", "DisassociateAccessPolicy", "ListAssociatedAccessPolicies",
        "CreatePodIdentityAssociation", "DescribePodIdentityAssociation", "UpdatePodIdentityAssociation",
        "DeletePodIdentityAssociation", "ListPodIdentityAssociations")

    def __init__(self, account_id: str, region: str, roles: Roles, images: Callable[[], Mapping[str, Image]]) -> None:
        self._account_id = account_id
        self._region = region
        self._roles = roles
        self._images = images
        self._extras: dict[str, _Extra] = {}
        self._lock = threading.RLock()
        self._access_config: dict[str, Any] | None = None

    # Clusters.

    def set_endpoint(self, cluster: str, endpoint: str, certificate_authority: bytes) -> None:
        """Let DescribeCluster tell where the control plane is.

        Args:
            cluster: Name of the cluster.
            endpoint: For example `https://127.0.0.1:40123`.
            certificate_authority: Its CA certificate, PEM.
        """
        found = self._cluster(cluster, "DescribeCluster")
        found.endpoint = endpoint
        found.certificate_authority = {"data": base64.b64encode(certificate_authority).decode()}

    def issuer(self, cluster: str) -> str:
        """URL of the cluster's OIDC issuer, `https://oidc.eks.<region>.amazonaws.com/id/<32 characters>`.

        It follows from the name, so that the control plane can be started with it before or after CreateCluster.
        """
        digest = hashlib.sha256(f"{self._account_id}/{self._region}/{cluster}".encode()).hexdigest()
        return f"https://oidc.eks.{self._region}.amazonaws.com/id/{digest[:32].upper()}"

    def cluster_of(self, issuer: str) -> str | None:
        """Name of the cluster that has this issuer."""
        return next((name for name in list(self._backend.clusters) if self.issuer(name) == issuer), None)

    def cluster_arn(self, cluster: str) -> str:
        """ARN of a cluster."""
        return self._arn(f"cluster/{cluster}")

    def version(self, cluster: str) -> str:
        """Kubernetes version of a cluster, `1.36`."""
        return str(self._cluster(cluster, "DescribeCluster").version)

    def security_group(self, cluster: str) -> str:
        """Id of the cluster security group that EKS made."""
        return str(self._cluster(cluster, "DescribeCluster").resources_vpc_config["clusterSecurityGroupId"])

    def node_instances(self, cluster: str, node_group: str) -> list[str]:
        """Provider IDs of a managed node group's instances, as `AwsCloud.machine` takes them."""
        ids = set(self._extra(cluster, "DescribeNodegroup").nodes.get(node_group, ()))
        return [f"aws:///{instance.availability_zone}/{instance.id}" for instance in self._ec2.all_instances()
                if instance.id in ids and instance.state == "running"]

    # Add-ons.

    def create_addon(self, clusterName: str, addonName: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        """CreateAddon: the add-on is CREATING until `settle_addon` is called, for only the cluster knows."""
        operation = "CreateAddon"
        extra = self._extra(clusterName, operation)
        if addonName not in ADDONS:
            message = _UNKNOWN_ADDON.format(name=addonName, version=self.version(clusterName))
            raise refusal("InvalidParameterException", message, operation)
        with self._lock:
            if addonName in extra.addons:
                raise refusal("ResourceInUseException", _ADDON_EXISTS, operation, 409)
            now = datetime.now(UTC)
            arn = self._arn(f"addon/{clusterName}/{addonName}/{secrets.token_hex(16)}")
            addon = {"addonName": addonName, "clusterName": clusterName, "status": "CREATING",
                     "addonVersion": rest.get("addonVersion") or ADDONS[addonName], "health": {"issues": []},
                     "addonArn": arn, "createdAt": now, "modifiedAt": now, "tags": rest.get("tags") or {},
                     **{key: rest[key] for key in ("serviceAccountRoleArn", "configurationValues") if rest.get(key)}}
            extra.addons[addonName] = addon
        return {"addon": dict(addon)}

    def settle_addon(self, cluster: str, addon: str, problem: str = "") -> dict[str, Any]:
        """Tell how an add-on's workload came up: ACTIVE, or what EKS says when it did not.

        Args:
            cluster: Name of the cluster.
            addon: Name of the add-on.
            problem: Why it is not available; becomes the health issue InsufficientNumberOfReplicas, and the status
                CREATE_FAILED (DEGRADED when it had been active).
        """
        found = self._addon(cluster, addon, "DescribeAddon")
        active = not problem
        failed = "CREATE_FAILED" if found["status"] in ("CREATING", "CREATE_FAILED") else "DEGRADED"
        found.update(status="ACTIVE" if active else failed, modifiedAt=datetime.now(UTC), health={"issues": [] if active
                     else [{"code": "InsufficientNumberOfReplicas", "message": problem, "resourceIds": []}]})
        return dict(found)

    def addon_status(self, cluster: str, addon: str) -> str:
        """Status of an add-on; empty when the cluster has none of that name."""
        return str(self._extra(cluster, "DescribeAddon").addons.get(addon, {}).get("status", ""))

    def describe_addon(self, clusterName: str, addonName: str) -> dict[str, Any]:  # noqa: N803
        """DescribeAddon."""
        return {"addon": dict(self._addon(clusterName, addonName, "DescribeAddon"))}

    def update_addon(self, clusterName: str, addonName: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        """UpdateAddon: version, role and configuration values change at once."""
        addon = self._addon(clusterName, addonName, "UpdateAddon")
        addon.update({key: rest[key] for key in ("addonVersion", "serviceAccountRoleArn", "configurationValues")
                      if rest.get(key) is not None}, modifiedAt=datetime.now(UTC))
        return {"update": {"id": secrets.token_hex(16), "status": "Successful", "type": "AddonUpdate", "params": [],
                           "createdAt": datetime.now(UTC), "errors": []}}

    def delete_addon(self, clusterName: str, addonName: str, preserve: bool = False) -> dict[str, Any]:  # noqa: N803
        """DeleteAddon: it is gone at once; its workload is the caller's matter."""
        addon = self._addon(clusterName, addonName, "DeleteAddon")
        del self._extra(clusterName, "DeleteAddon").addons[addonName]
        return {"addon": {**addon, "status": "DELETING"}}

    def list_addons(self, clusterName: str, **paging: Any) -> dict[str, Any]:  # noqa: N803
        """ListAddons, in one page."""
        return {"addons": sorted(self._extra(clusterName, "ListAddons").addons)}

    # Access.

    def create_access_entry(self, clusterName: str, principalArn: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        """CreateAccessEntry."""
        operation = "CreateAccessEntry"
        extra = self._access(clusterName, operation)
        kind = rest.get("type") or "STANDARD"
        groups = rest.get("kubernetesGroups") or []
        if kind not in _ENTRY_TYPES:
            raise refusal("InvalidParameterException", _BAD_TYPE.format(type=kind), operation)
        self._check_groups(kind, groups, rest.get("username"), operation)
        with self._lock:
            if principalArn in extra.entries:
                raise refusal("ResourceInUseException", _ENTRY_EXISTS, operation, 409)
            role_id = self._principal_id(principalArn)
            if not role_id:
                raise refusal("InvalidParameterException", _BAD_PRINCIPAL, operation)
            extra.role_ids[principalArn] = role_id
            extra.entries[principalArn] = self._entry(clusterName, principalArn, kind, groups, rest)
        return {"accessEntry": dict(extra.entries[principalArn])}

    def describe_access_entry(self, clusterName: str, principalArn: str) -> dict[str, Any]:  # noqa: N803
        """DescribeAccessEntry."""
        return {"accessEntry": dict(self._known_entry(clusterName, principalArn, "DescribeAccessEntry"))}

    def update_access_entry(self, clusterName: str, principalArn: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        """UpdateAccessEntry: groups and username."""
        operation = "UpdateAccessEntry"
        entry = self._known_entry(clusterName, principalArn, operation)
        self._check_groups(entry["type"], rest.get("kubernetesGroups") or [], rest.get("username"), operation)
        entry.update({key: rest[key] for key in ("kubernetesGroups", "username") if rest.get(key) is not None},
                     modifiedAt=datetime.now(UTC))
        return {"accessEntry": dict(entry)}

    def delete_access_entry(self, clusterName: str, principalArn: str) -> dict[str, Any]:  # noqa: N803
        """DeleteAccessEntry, with the policies associated with it."""
        self._known_entry(clusterName, principalArn, "DeleteAccessEntry")
        extra = self._extra(clusterName, "DeleteAccessEntry")
        del extra.entries[principalArn]
        extra.policies.pop(principalArn, None)
        return {}

    def list_access_entries(self, clusterName: str, **paging: Any) -> dict[str, Any]:  # noqa: N803
        """ListAccessEntries, in one page."""
        return {"accessEntries": sorted(self._access(clusterName, "ListAccessEntries").entries)}

    def associate_access_policy(self, clusterName: str, principalArn: str, policyArn: str,  # noqa: N803
                                accessScope: Mapping[str, Any]) -> dict[str, Any]:  # noqa: N803
        """AssociateAccessPolicy; doing it again changes the scope."""
        operation = "AssociateAccessPolicy"
        entry = self._known_entry(clusterName, principalArn, operation)
        if policyArn not in _ACCESS_POLICIES:
            raise refusal("InvalidParameterException", _BAD_POLICY, operation)
        if entry["type"] != "STANDARD":
            raise refusal("InvalidRequestException", _NODE_POLICY.format(type=entry["type"]), operation)
        now = datetime.now(UTC)
        policy = {"policyArn": policyArn, "accessScope": {"namespaces": [], **accessScope}, "associatedAt": now,
                  "modifiedAt": now}
        self._extra(clusterName, operation).policies.setdefault(principalArn, {})[policyArn] = policy
        return {"clusterName": clusterName, "principalArn": principalArn, "associatedAccessPolicy": dict(policy)}

    def disassociate_access_policy(self, clusterName: str, principalArn: str,  # noqa: N803
                                   policyArn: str) -> dict[str, Any]:  # noqa: N803
        """DisassociateAccessPolicy."""
        operation = "DisassociateAccessPolicy"
        self._known_entry(clusterName, principalArn, operation)
        associated = self._extra(clusterName, operation).policies.get(principalArn, {})
        if associated.pop(policyArn, None) is None:
            raise refusal("ResourceNotFoundException", _NO_POLICY, operation, 404)
        return {}

    def list_associated_access_policies(self, clusterName: str, principalArn: str,  # noqa: N803
                                        **paging: Any) -> dict[str, Any]:
        """ListAssociatedAccessPolicies, in one page."""
        self._known_entry(clusterName, principalArn, "ListAssociatedAccessPolicies")
        associated = self._extra(clusterName, "ListAssociatedAccessPolicies").policies.get(principalArn, {})
        return {"clusterName": clusterName, "principalArn": principalArn,
                "associatedAccessPolicies": [dict(policy) for policy in associated.values()]}

    def node_refusal(self, cluster: str, role: Any) -> str:
        """Why nodes with this role (moto's) cannot join the cluster; empty when they can."""
        extra = self._extras.get(cluster)
        entry = extra.entries.get(role.arn) if extra else None
        if extra is None or entry is None:
            return (f"the role {role.arn} of the node has no access entry in the cluster {cluster}; create an access "
                    "entry of type EC2_LINUX for it")
        if entry["type"] not in NODE_ENTRY_TYPES:
            return (f"the access entry of the role {role.arn} in the cluster {cluster} has the type {entry['type']}, "
                    "which nodes cannot use; replace it by one of type EC2_LINUX")
        if extra.role_ids.get(role.arn) != role.id:
            return (f"the access entry of {role.arn} in the cluster {cluster} belongs to an older role of that name; "
                    "create the access entry again")
        return ""

    # Pod identity.

    def create_pod_identity_association(self, clusterName: str, namespace: str, serviceAccount: str,  # noqa: N803
                                        roleArn: str, **rest: Any) -> dict[str, Any]:  # noqa: N803
        """CreatePodIdentityAssociation."""
        operation = "CreatePodIdentityAssociation"
        extra = self._extra(clusterName, operation)
        with self._lock:
            existing = self.association(clusterName, namespace, serviceAccount)
            if existing:
                message = _ASSOCIATION_EXISTS.format(id=existing["associationId"])
                raise refusal("ResourceInUseException", message, operation, 409)
            self._check_pod_role(clusterName, namespace, serviceAccount, roleArn, operation)
            now = datetime.now(UTC)
            name = "a-" + "".join(secrets.choice(_LETTERS) for _ in range(17))
            made = extra.associations[name] = {
                "clusterName": clusterName, "namespace": namespace, "serviceAccount": serviceAccount,
                "roleArn": roleArn, "associationId": name, "tags": rest.get("tags") or {}, "createdAt": now,
                "associationArn": self._arn(f"podidentityassociation/{clusterName}/{name}"),
                "modifiedAt": now, "disableSessionTags": bool(rest.get("disableSessionTags"))}
        return {"association": dict(made)}

    def describe_pod_identity_association(self, clusterName: str,  # noqa: N803
                                          associationId: str) -> dict[str, Any]:  # noqa: N803
        """DescribePodIdentityAssociation."""
        return {"association": dict(self._association(clusterName, associationId, "DescribePodIdentityAssociation"))}

    def update_pod_identity_association(self, clusterName: str, associationId: str,  # noqa: N803
                                        **rest: Any) -> dict[str, Any]:
        """UpdatePodIdentityAssociation: the role."""
        operation = "UpdatePodIdentityAssociation"
        found = self._association(clusterName, associationId, operation)
        if rest.get("roleArn"):
            self._check_pod_role(clusterName, found["namespace"], found["serviceAccount"], rest["roleArn"], operation)
        found.update({key: rest[key] for key in ("roleArn", "disableSessionTags") if rest.get(key) is not None},
                     modifiedAt=datetime.now(UTC))
        return {"association": dict(found)}

    def delete_pod_identity_association(self, clusterName: str, associationId: str) -> dict[str, Any]:  # noqa: N803
        """DeletePodIdentityAssociation."""
        operation = "DeletePodIdentityAssociation"
        found = self._association(clusterName, associationId, operation)
        del self._extra(clusterName, operation).associations[associationId]
        return {"association": found}

    def list_pod_identity_associations(self, clusterName: str, namespace: str = "",  # noqa: N803
                                       serviceAccount: str = "", **paging: Any) -> dict[str, Any]:  # noqa: N803
        """ListPodIdentityAssociations, in one page."""
        keys = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId")
        return {"associations": [
            {key: item[key] for key in keys}
            for item in self._extra(clusterName, "ListPodIdentityAssociations").associations.values()
            if namespace in ("", item["namespace"]) and serviceAccount in ("", item["serviceAccount"])]}

    def association(self, cluster: str, namespace: str, service_account: str) -> dict[str, Any] | None:
        """The pod identity association of a service account, or None."""
        extra = self._extras.get(cluster)
        return next((item for item in list(extra.associations.values()) if item["namespace"] == namespace
                     and item["serviceAccount"] == service_account), None) if extra else None

    def pod_trust_refusal(self, cluster: str, namespace: str, service_account: str, role: Any) -> str:
        """Why EKS may not assume a role (moto's) for a pod; empty when it may."""
        context = {"aws:SourceAccount": self._account_id, "aws:SourceArn": self.cluster_arn(cluster),
                   "aws:RequestTag/eks-cluster-arn": self.cluster_arn(cluster),
                   "aws:RequestTag/eks-cluster-name": cluster,
                   "aws:RequestTag/kubernetes-namespace": namespace,
                   "aws:RequestTag/kubernetes-service-account": service_account}
        return policies.trust_refusal(role.assume_role_policy_document, "Service", POD_IDENTITY_PRINCIPAL,
                                      POD_IDENTITY_ACTIONS, context)

    # moto.

    def patch(self, patches: Patches) -> None:
        """Install the changes that the module lists."""
        from moto.core.responses import ActionResult
        from moto.eks import urls
        from moto.eks.models import EKSBackend
        from moto.eks.responses import EKSResponse

        for operation in self.OPERATIONS:
            patches.set(EKSResponse, _snake(operation), self._handler(operation, ActionResult))
        routes = dict.fromkeys(_ROUTES, urls.response.dispatch)
        patches.set(urls, "url_paths", {**urls.url_paths, **routes})
        patches.wrap(EKSResponse, "create_cluster", self._create_cluster_response)
        patches.wrap(EKSBackend, "create_cluster", self._create_cluster)
        patches.wrap(EKSBackend, "delete_cluster", self._delete_cluster)
        patches.wrap(EKSBackend, "create_nodegroup", self._create_nodegroup)
        patches.wrap(EKSBackend, "update_nodegroup_config", self._update_nodegroup)
        patches.wrap(EKSBackend, "delete_nodegroup", self._delete_nodegroup)

    def _handler(self, operation: str, result: Callable[[Any], Any]) -> Callable[[Any], Any]:
        from botocore.exceptions import ClientError
        from moto.core.utils import get_service_model

        members = {name: member.serialization.get("name", name) for name, member
                   in get_service_model("eks").operation_model(operation).input_shape.members.items()}
        method = getattr(self, _snake(operation))

        def handle(response: Any) -> Any:
            given = {name: response._get_param(sent) for name, sent in members.items() if name != "clientRequestToken"}
            given = {name: value for name, value in given.items() if value is not None}
            if "principalArn" in given:
                given["principalArn"] = unquote(given["principalArn"])
            try:
                return result(method(**given))
            except ClientError as error:
                detail = error.response["Error"]
                raise answer(detail["Code"], detail["Message"]) from error
        return handle

    def _create_cluster_response(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Keep the parameters that moto drops: the backend's signature has no place for them."""
        def create(response: Any) -> Any:
            with self._lock:
                self._access_config = response._get_param("accessConfig")
                try:
                    return original(response)
                finally:
                    self._access_config = None
        return create

    def _create_cluster(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(backend: Any, name: str, role_arn: str, resources_vpc_config: dict[str, Any], *arguments: Any,
                   **options: Any) -> Any:
            role = self._roles.by_arn(role_arn)
            if role is None or policies.trust_refusal(role.assume_role_policy_document, "Service", "eks.amazonaws.com",
                                                      ["sts:AssumeRole"], {}):
                raise answer("InvalidParameterException", _BAD_ROLE.format(arn=role_arn))
            subnets = self._subnets(resources_vpc_config.get("subnetIds") or [])
            cluster = original(backend, name, role_arn, resources_vpc_config, *arguments, **options)
            access = {"authenticationMode": "CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": True,
                      **(self._access_config or {})}
            extra = self._extras[name] = _Extra()
            group = self._make_group(name, subnets[0].vpc_id)
            cluster.resources_vpc_config = {
                "endpointPublicAccess": True, "endpointPrivateAccess": False, "publicAccessCidrs": ["0.0.0.0/0"],
                "securityGroupIds": [], **resources_vpc_config, "clusterSecurityGroupId": group.id,
                "vpcId": subnets[0].vpc_id}
            cluster.access_config = access
            cluster.identity = {"oidc": {"issuer": self.issuer(name)}}
            extra.interfaces = [
                self._ec2.create_network_interface(
                    subnet, subnet.get_available_subnet_ip(self), group_ids=[group.id],
                    description=f"Amazon EKS {name}").id for subnet in subnets[:2]]
            if access["bootstrapClusterCreatorAdminPermissions"] and access["authenticationMode"] != "CONFIG_MAP":
                arn = self._roles.administrator_arn
                self.create_access_entry(name, arn)
                self.associate_access_policy(name, arn, _CLUSTER_ADMIN, {"type": "cluster"})
            return cluster
        return create

    def _delete_cluster(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def delete(backend: Any, name: str) -> Any:
            cluster = original(backend, name)
            extra = self._extras.pop(name, _Extra())
            for interface in extra.interfaces:
                if interface in self._ec2.enis:
                    self._ec2.enis[interface].delete()
            with suppress(type(answer("", ""))):  # EKS leaves a group in use, and with it the VPC cannot be deleted
                self._ec2.delete_security_group(group_id=cluster.resources_vpc_config["clusterSecurityGroupId"])
            return cluster
        return delete

    def _create_nodegroup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(backend: Any, cluster_name: str, node_role: str, nodegroup_name: str, subnets: list[str],
                   *arguments: Any, **options: Any) -> Any:
            role = self._roles.by_arn(node_role)
            if role is None or policies.trust_refusal(role.assume_role_policy_document, "Service", "ec2.amazonaws.com",
                                                      ["sts:AssumeRole"], {}):
                raise answer("InvalidParameterException", _BAD_NODE_ROLE.format(arn=node_role))
            options["ami_type"] = options.get("ami_type") or "AL2023_x86_64_STANDARD"
            if options["ami_type"] not in _ARCHITECTURES:
                raise answer("InvalidParameterException", _NO_IMAGE_TYPE.format(
                    known=", ".join(sorted(_ARCHITECTURES)), type=options["ami_type"]))
            self._subnets(subnets, zones=1)
            cluster = backend.clusters.get(cluster_name)
            options["version"] = options.get("version") or (cluster.version if cluster else None)
            group = original(backend, cluster_name, node_role, nodegroup_name, subnets, *arguments, **options)
            extra = self._extras[cluster_name]
            if node_role not in extra.entries:
                extra.role_ids[node_role] = role.id
                extra.entries[node_role] = self._entry(cluster_name, node_role, "EC2_LINUX", [], {})
            self._iam.create_instance_profile(name=f"eks-{group.uuid}", path="/", role_names=[role.name])
            self._scale(extra, group)
            return group
        return create

    def _update_nodegroup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(backend: Any, cluster_name: str, nodegroup_name: str, *arguments: Any, **options: Any) -> Any:
            result = original(backend, cluster_name, nodegroup_name, *arguments, **options)
            self._scale(self._extras[cluster_name], backend.clusters[cluster_name].nodegroups[nodegroup_name])
            return result
        return update

    def _delete_nodegroup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def delete(backend: Any, cluster_name: str, nodegroup_name: str) -> Any:
            group = original(backend, cluster_name, nodegroup_name)
            ids = self._extras[cluster_name].nodes.pop(nodegroup_name, [])
            if ids:
                self._ec2.terminate_instances(ids)
            profile = self._roles.profile(f"eks-{group.uuid}")
            if profile is not None:
                for role in list(profile.roles):
                    self._iam.remove_role_from_instance_profile(profile.name, role.name)
                self._iam.delete_instance_profile(profile.name)
            return group
        return delete

    def _scale(self, extra: _Extra, group: Any) -> None:
        """Launch or terminate instances until there are as many as desired, spread over the subnets."""
        wanted = int(group.scaling_config["desiredSize"])
        ids = extra.nodes.setdefault(group.nodegroup_name, [])
        if len(ids) > wanted:
            self._ec2.terminate_instances(ids[wanted:])
            del ids[wanted:]
        image = self._node_image(group)
        name = {"eks:cluster-name": group.cluster_name, "eks:nodegroup-name": group.nodegroup_name,
                f"kubernetes.io/cluster/{group.cluster_name}": "owned"}
        while len(ids) < wanted:
            reservation = self._ec2.run_instances(
                image, 1, None, [], instance_type=group.instance_types[0], is_instance_type_default=False,
                region_name=self._region, subnet_id=group.subnets[len(ids) % len(group.subnets)], placement=None,
                security_group_ids=[self.security_group(group.cluster_name)], tags={"instance": name, "volume": name},
                nics=[{"DeviceIndex": 0, "DeleteOnTermination": True, "Groups": []}],
                block_device_mappings=[{"DeviceName": "/dev/xvda", "Ebs": {
                    "VolumeSize": int(group.disk_size), "VolumeType": "gp3", "DeleteOnTermination": True}}])
            instance = reservation.instances[0]
            self._ec2.associate_iam_instance_profile(
                instance_id=instance.id, iam_instance_profile_name=f"eks-{group.uuid}")
            ids.append(instance.id)

    def _node_image(self, group: Any) -> str:
        architecture = _ARCHITECTURES[group.ami_type]
        family = "bottlerocket-aws-k8s-" if group.ami_type.startswith("BOTTLEROCKET") else "amazon-eks-node-al2023-"
        found = [image for image in self._images().values() if image.name.startswith(family)
                 and image.architecture == architecture and f"-{group.version}-" in image.name
                 and "nvidia" not in image.name and "neuron" not in image.name]
        if not found:
            raise answer("InvalidParameterException",
                        f"Requested Nodegroup release version for Kubernetes {group.version} is invalid: the rehearsal "
                        f"has no image for it")
        return max(found, key=lambda image: image.created).id

    # Helpers.

    @property
    def _backend(self) -> Any:
        from moto.eks.models import eks_backends

        return eks_backends[self._account_id][self._region]

    @property
    def _ec2(self) -> Any:
        from moto.ec2.models import ec2_backends

        return ec2_backends[self._account_id][self._region]

    @property
    def _iam(self) -> Any:
        from moto.iam.models import iam_backends

        return iam_backends[self._account_id]["aws"]

    def _arn(self, rest: str) -> str:
        return f"arn:aws:eks:{self._region}:{self._account_id}:{rest}"

    def _cluster(self, name: str, operation: str) -> Any:
        cluster = self._backend.clusters.get(name)
        if cluster is None:
            raise refusal("ResourceNotFoundException", _NO_CLUSTER.format(name=name), operation, 404)
        return cluster

    def _extra(self, cluster: str, operation: str) -> _Extra:
        self._cluster(cluster, operation)
        return self._extras[cluster]

    def _access(self, cluster: str, operation: str) -> _Extra:
        extra = self._extra(cluster, operation)
        if self._cluster(cluster, operation).access_config["authenticationMode"] == "CONFIG_MAP":
            raise refusal("InvalidRequestException", _BAD_MODE, operation)
        return extra

    def _known_entry(self, cluster: str, principal: str, operation: str) -> dict[str, Any]:
        entry = self._access(cluster, operation).entries.get(principal)
        if entry is None:
            raise refusal("ResourceNotFoundException", _NO_ENTRY, operation, 404)
        return entry

    def _entry(self, cluster: str, principal: str, kind: str, groups: list[str],
               rest: Mapping[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC)
        node = kind in NODE_ENTRY_TYPES
        name = principal.rsplit("/", 1)[-1]
        sort = principal.split(":")[-1].split("/")[0]
        return {"clusterName": cluster, "principalArn": principal, "type": kind,
                "kubernetesGroups": ["system:nodes"] if node else list(groups),
                "username": rest.get("username") or ("system:node:{{EC2PrivateDNSName}}" if node else principal),
                "accessEntryArn": self._arn(f"access-entry/{cluster}/{sort}/{self._account_id}/{name}/"
                                            f"{secrets.token_hex(16)}"),
                "createdAt": now, "modifiedAt": now, "tags": rest.get("tags") or {}}

    def _check_groups(self, kind: str, groups: list[str], username: str | None, operation: str) -> None:
        if kind != "STANDARD" and (groups or username):
            raise refusal("InvalidParameterException", _NODE_GROUPS.format(type=kind), operation)
        for group in groups:
            if group.startswith("system:"):
                raise refusal("InvalidParameterException", _BAD_GROUP.format(name=group), operation)

    def _principal_id(self, arn: str) -> str:
        """A mark of the principal that changes when it is made anew; empty when it does not exist."""
        if f"::{self._account_id}:" not in arn:
            return arn  # another account's: AWS cannot look there either
        if ":role/" in arn:
            role = self._roles.by_arn(arn)
            return str(role.id) if role else ""
        return arn if any(user.arn == arn for user in self._iam.users.values()) else ""

    def _addon(self, cluster: str, addon: str, operation: str) -> dict[str, Any]:
        found = self._extra(cluster, operation).addons.get(addon)
        if found is None:
            raise refusal("ResourceNotFoundException", _NO_ADDON.format(name=addon, cluster=cluster), operation, 404)
        return found

    def _association(self, cluster: str, association: str, operation: str) -> dict[str, Any]:
        found = self._extra(cluster, operation).associations.get(association)
        if found is None:
            raise refusal("ResourceNotFoundException", _NO_ASSOCIATION.format(id=association), operation, 404)
        return found

    def _check_pod_role(self, cluster: str, namespace: str, service_account: str, arn: str, operation: str) -> None:
        role = self._roles.by_arn(arn)
        if role is None:
            raise refusal("InvalidParameterException", _NO_ROLE, operation)
        reason = self.pod_trust_refusal(cluster, namespace, service_account, role)
        if reason:
            raise refusal("InvalidParameterException", _BAD_TRUST.format(reason=reason), operation)

    def _subnets(self, ids: list[str], zones: int = 2) -> list[Any]:
        known = {name: subnet for subnets in self._ec2.subnets.values() for name, subnet in subnets.items()}
        for name in ids:
            if name not in known:
                raise answer("InvalidParameterException", _NO_SUBNET.format(id=name))
        found = [known[name] for name in ids]
        if len({subnet.availability_zone for subnet in found}) < zones:
            raise answer("InvalidParameterException", _ONE_ZONE)
        if len({subnet.vpc_id for subnet in found}) > 1:
            raise answer("InvalidParameterException", _TWO_NETWORKS)
        # One subnet a zone first: the control plane has its interfaces in two zones.
        return sorted(found, key=lambda subnet: [other.availability_zone for other in found[:found.index(subnet)]]
                      .count(subnet.availability_zone))

    def _make_group(self, cluster: str, vpc_id: str) -> Any:
        name = f"eks-cluster-sg-{cluster}-{secrets.randbelow(10**10):010d}"
        group = self._ec2.create_security_group(
            name, "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as "
                  "well as any managed workloads.", vpc_id=vpc_id,
            tags={"Name": name, "aws:eks:cluster-name": cluster, f"kubernetes.io/cluster/{cluster}": "owned"})
        self._ec2.authorize_security_group_ingress(
            group.id, "-1", None, None, [], source_groups=[{"GroupId": group.id}], vpc_id=vpc_id)
        return group


_ROUTES = tuple("{0}/clusters/(?P<name>[^/]+)/" + rest for rest in (
    "addons$", "addons/(?P<addonName>[^/]+)$", "addons/(?P<addonName>[^/]+)/update$",
    "access-entries$", "access-entries/(?P<principalArn>.+)$",
    "pod-identity-associations$", "pod-identity-associations/(?P<associationId>[^/]+)$"))


def _snake(operation: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")

