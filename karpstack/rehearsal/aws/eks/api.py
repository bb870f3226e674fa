"""EKS operations that moto lacks: versions, add-ons, access entries, access policies and pod identity associations.

`Eks` has a method of boto3's name, parameters and answer for each of them, and raises moto's errors.
`karpstack.rehearsal.aws.eks.moto` puts them on the wire and corrects moto's clusters and node groups.

Absent: Fargate, EKS Auto Mode, identity provider configurations, cluster insights.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

import yaml

from karpstack.karpenter import clock, fact_dates
from karpstack.karpenter.releases import number, offered, releases
from karpstack.rehearsal.aws.errors import answer, refused
from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.aws.iam.roles import Roles

#: Made-up versions of the add-ons that exist here: first EKS's default, last the newest.
ADDONS = {
    "coredns": ("v1.13.2-eksbuild.1", "v1.13.9-eksbuild.1"),
    "eks-pod-identity-agent": ("v1.3.10-eksbuild.2", "v1.3.11-eksbuild.1"),
    "kube-proxy": ("v1.36.0-eksbuild.2", "v1.36.2-eksbuild.3"),
    "vpc-cni": ("v1.21.1-eksbuild.3", "v1.21.2-eksbuild.1"),
    "aws-ebs-csi-driver": ("v1.62.0-eksbuild.1", "v1.63.0-eksbuild.1"),
}
POD_IDENTITY_PRINCIPAL = "pods.eks.amazonaws.com"
WEB_IDENTITY_AUDIENCE = "sts.amazonaws.com"
POD_IDENTITY_ACTIONS = ("sts:AssumeRole", "sts:TagSession")
NODE_ENTRY_TYPES = frozenset({"EC2_LINUX", "EC2", "HYBRID_LINUX"})

_ACCESS_POLICIES = frozenset(
    f"arn:aws:eks::aws:cluster-access-policy/{name}"
    for name in (
        "AmazonEKSClusterAdminPolicy",
        "AmazonEKSAdminPolicy",
        "AmazonEKSEditPolicy",
        "AmazonEKSViewPolicy",
        "AmazonEKSAdminViewPolicy",
        "AmazonEKSSecretReaderPolicy",
        "AmazonEKSAutoNodePolicy",
    )
)
_LETTERS = string.ascii_lowercase + string.digits
_ENTRY_TYPES = frozenset({"STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX"})

#: EKS' names of what a version is.
_VERSION_STATUS = {"standard": "STANDARD_SUPPORT", "extended": "EXTENDED_SUPPORT", "ended": "UNSUPPORTED"}


@dataclass
class Record:
    """What EKS knows about a cluster beyond moto.

    Attributes:
        addons: By name, as the API shows them; so are the next three.
        entries: Access entries by principal.
        policies: Associated access policies by principal and policy.
        associations: Pod identity associations by id.
        role_ids: The principal behind each entry; a role made again under its old name is another one.
        interfaces: Ids of the control plane's network interfaces.
        nodes: Ids of the instances of each managed node group.
        upgraded: Whether its version is one that it was upgraded to.
        auto_mode: Whether EKS Auto Mode makes its nodes, which nothing here plays.
        joining: Lets the nodes of a managed node group join, by its name, when it was scaled; None where whoever scales
            it does that, as the stack's provider.
    """

    addons: dict[str, dict[str, Any]] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    associations: dict[str, dict[str, Any]] = field(default_factory=dict)
    role_ids: dict[str, str] = field(default_factory=dict)
    interfaces: list[str] = field(default_factory=list)
    nodes: dict[str, list[str]] = field(default_factory=dict)
    upgraded: bool = False
    auto_mode: bool = False
    joining: Callable[[str], None] | None = None


class Eks:
    """The account's EKS, shared by all threads."""

    def __init__(self, account_id: str, region: str, roles: Roles) -> None:
        self._account_id = account_id
        self._region = region
        self._roles = roles
        self._lock = threading.RLock()
        self.records: dict[str, Record] = {}

    # Clusters.

    def set_endpoint(self, cluster: str, endpoint: str, certificate_authority: bytes) -> None:
        """Let DescribeCluster tell where the control plane is.

        Args:
            cluster: Name of the cluster.
            endpoint: For example `https://127.0.0.1:40123`.
            certificate_authority: Its CA certificate, PEM.
        """
        found = self.cluster(cluster)
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
        return next((name for name in list(self.backend.clusters) if self.issuer(name) == issuer), None)

    def cluster_arn(self, cluster: str) -> str:
        """ARN of a cluster."""
        return self._arn(f"cluster/{cluster}")

    def has_zonal_shift(self, arn: str) -> bool:
        """Whether a cluster is enabled for zonal shift."""
        found = (cluster for cluster in list(self.backend.clusters.values()) if cluster.arn == arn)
        return any(cluster.zonal_shift_config["enabled"] for cluster in found)

    def version(self, cluster: str) -> str:
        """Kubernetes version of a cluster, `1.36`."""
        return str(self.cluster(cluster).version)

    def security_group(self, cluster: str) -> str:
        """Id of the cluster security group that EKS made."""
        return str(self.cluster(cluster).resources_vpc_config["clusterSecurityGroupId"])

    def node_instances(self, cluster: str, node_group: str) -> list[str]:
        """Provider IDs of a managed node group's instances, as `AwsCloud.machine` takes them; none without it."""
        record = self.records.get(cluster)
        ids = set(record.nodes.get(node_group, ())) if record else set()
        return [
            f"aws:///{instance.availability_zone}/{instance.id}"
            for instance in self.ec2.all_instances()
            if instance.id in ids and instance.state == "running"
        ]

    # Versions.

    def describe_cluster_versions(self, clusterVersions: Sequence[str] = (), **rest: Any) -> dict[str, Any]:
        """DescribeClusterVersions, in one page: what `karpenter/facts` says of today, ended ones if all are wanted."""
        today = fact_dates.played("aws", fact_dates.today())
        found = []
        for release in releases("aws").values():
            status = release.status(today)
            if clusterVersions and release.version not in clusterVersions:
                continue
            if status == "planned" or (status == "ended" and not rest.get("includeAll")):
                continue
            found.append(
                {
                    "clusterVersion": release.version,
                    "clusterType": "eks",
                    "releaseDate": _midnight(release.begins),
                    "endOfStandardSupportDate": _midnight(release.standard),
                    "endOfExtendedSupportDate": _midnight(release.extended),
                    "versionStatus": _VERSION_STATUS[status],
                }
            )
        return {"clusterVersions": found[::-1]}

    def update_cluster_version(self, name: str, version: str, **rest: Any) -> dict[str, Any]:
        """UpdateClusterVersion: up, one minor version at a time, with its node groups. It is done when this returns."""
        cluster = self.cluster(name)
        extra = self._extra(name)
        old, known = str(cluster.version), offered("aws", fact_dates.played("aws", fact_dates.today()))
        steps = number(version)[1] - number(old)[1] if version in known else 0
        if steps == -1 and extra.upgraded:
            raise refused("no way back", old=old, new=version)
        if steps != 1:
            raise refused("bad upgrade", old=old, new=version)
        groups = [group.nodegroup_name for group in cluster.nodegroups.values() if str(group.version) != old]
        if groups:
            raise refused("old groups", names=", ".join(sorted(groups)), version=old)
        extra.upgraded = True
        cluster.version = version
        return done("VersionUpdate", {"type": "Version", "value": version})

    # Add-ons.

    def create_addon(self, clusterName: str, addonName: str, **rest: Any) -> dict[str, Any]:
        """CreateAddon: the add-on is CREATING until `settle_addon` is called, for only the cluster knows."""
        extra = self._extra(clusterName)
        if addonName not in ADDONS:
            raise refused("unknown addon", name=addonName, version=self.version(clusterName))
        version = rest.get("addonVersion") or ADDONS[addonName][0]
        _check_addon_version(addonName, version)
        with self._lock:
            if addonName in extra.addons:
                raise refused("addon exists")
            now = clock.utcnow()
            arn = self._arn(f"addon/{clusterName}/{addonName}/{secrets.token_hex(16)}")
            addon = {
                "addonName": addonName,
                "clusterName": clusterName,
                "status": "CREATING",
                "addonVersion": version,
                "health": {"issues": []},
                "addonArn": arn,
                "createdAt": now,
                "modifiedAt": now,
                "tags": rest.get("tags") or {},
                **{key: rest[key] for key in ("serviceAccountRoleArn", "configurationValues") if rest.get(key)},
            }
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
        found = self._addon(cluster, addon)
        active = not problem
        failed = "CREATE_FAILED" if found["status"] in ("CREATING", "CREATE_FAILED") else "DEGRADED"
        found.update(
            status="ACTIVE" if active else failed,
            modifiedAt=clock.utcnow(),
            health={
                "issues": []
                if active
                else [{"code": "InsufficientNumberOfReplicas", "message": problem, "resourceIds": []}]
            },
        )
        return dict(found)

    def addon_status(self, cluster: str, addon: str) -> str:
        """Status of an add-on; empty when the cluster has none of that name."""
        return str(self._extra(cluster).addons.get(addon, {}).get("status", ""))

    def describe_addon(self, clusterName: str, addonName: str) -> dict[str, Any]:
        """DescribeAddon."""
        return {"addon": dict(self._addon(clusterName, addonName))}

    def update_addon(self, clusterName: str, addonName: str, **rest: Any) -> dict[str, Any]:
        """UpdateAddon: version, role and configuration values change at once."""
        addon = self._addon(clusterName, addonName)
        if rest.get("addonVersion"):
            _check_addon_version(addonName, rest["addonVersion"])
        addon.update(
            {
                key: rest[key]
                for key in ("addonVersion", "serviceAccountRoleArn", "configurationValues")
                if rest.get(key) is not None
            },
            modifiedAt=clock.utcnow(),
        )
        return done("AddonUpdate")

    def delete_addon(self, clusterName: str, addonName: str, preserve: bool = False) -> dict[str, Any]:
        """DeleteAddon: it is gone at once; its workload is the caller's matter."""
        addon = self._addon(clusterName, addonName)
        del self._extra(clusterName).addons[addonName]
        return {"addon": {**addon, "status": "DELETING"}}

    def list_addons(self, clusterName: str, **paging: Any) -> dict[str, Any]:
        """ListAddons, in one page."""
        return {"addons": sorted(self._extra(clusterName).addons)}

    # Access.

    def create_access_entry(self, clusterName: str, principalArn: str, **rest: Any) -> dict[str, Any]:
        """CreateAccessEntry."""
        extra = self._access(clusterName)
        kind = rest.get("type") or "STANDARD"
        groups = rest.get("kubernetesGroups") or []
        if kind not in _ENTRY_TYPES:
            raise refused("bad type", type=kind)
        self._check_groups(kind, groups, rest.get("username"))
        with self._lock:
            if principalArn in extra.entries:
                raise refused("entry exists")
            role_id = self._principal_id(principalArn)
            if not role_id:
                raise refused("bad principal")
            extra.role_ids[principalArn] = role_id
            extra.entries[principalArn] = self.new_entry(clusterName, principalArn, kind, groups, rest)
        return {"accessEntry": dict(extra.entries[principalArn])}

    def describe_access_entry(self, clusterName: str, principalArn: str) -> dict[str, Any]:
        """DescribeAccessEntry."""
        return {"accessEntry": dict(self._known_entry(clusterName, principalArn))}

    def update_access_entry(self, clusterName: str, principalArn: str, **rest: Any) -> dict[str, Any]:
        """UpdateAccessEntry: groups and username."""
        entry = self._known_entry(clusterName, principalArn)
        self._check_groups(entry["type"], rest.get("kubernetesGroups") or [], rest.get("username"))
        entry.update(
            {key: rest[key] for key in ("kubernetesGroups", "username") if rest.get(key) is not None},
            modifiedAt=clock.utcnow(),
        )
        return {"accessEntry": dict(entry)}

    def delete_access_entry(self, clusterName: str, principalArn: str) -> dict[str, Any]:
        """DeleteAccessEntry, with the policies associated with it."""
        self._known_entry(clusterName, principalArn)
        extra = self._extra(clusterName)
        del extra.entries[principalArn]
        extra.policies.pop(principalArn, None)
        return {}

    def list_access_entries(self, clusterName: str, **paging: Any) -> dict[str, Any]:
        """ListAccessEntries, in one page."""
        return {"accessEntries": sorted(self._access(clusterName).entries)}

    def associate_access_policy(
        self,
        clusterName: str,
        principalArn: str,
        policyArn: str,
        accessScope: Mapping[str, Any],
    ) -> dict[str, Any]:
        """AssociateAccessPolicy; doing it again changes the scope."""
        entry = self._known_entry(clusterName, principalArn)
        if policyArn not in _ACCESS_POLICIES:
            raise refused("bad policy")
        if entry["type"] != "STANDARD":
            raise refused("node policy", type=entry["type"])
        now = clock.utcnow()
        policy = {
            "policyArn": policyArn,
            "accessScope": {"namespaces": [], **accessScope},
            "associatedAt": now,
            "modifiedAt": now,
        }
        self._extra(clusterName).policies.setdefault(principalArn, {})[policyArn] = policy
        return {"clusterName": clusterName, "principalArn": principalArn, "associatedAccessPolicy": dict(policy)}

    def disassociate_access_policy(self, clusterName: str, principalArn: str, policyArn: str) -> dict[str, Any]:
        """DisassociateAccessPolicy."""
        self._known_entry(clusterName, principalArn)
        associated = self._extra(clusterName).policies.get(principalArn, {})
        if associated.pop(policyArn, None) is None:
            raise refused("no policy")
        return {}

    def list_associated_access_policies(self, clusterName: str, principalArn: str, **paging: Any) -> dict[str, Any]:
        """ListAssociatedAccessPolicies, in one page."""
        self._known_entry(clusterName, principalArn)
        associated = self._extra(clusterName).policies.get(principalArn, {})
        return {
            "clusterName": clusterName,
            "principalArn": principalArn,
            "associatedAccessPolicies": [dict(policy) for policy in associated.values()],
        }

    def node_refusal(self, cluster: str, role: Any, aws_auth: Callable[[], str] = lambda: "") -> str:
        """Why nodes with this role (moto's) cannot join the cluster; empty when they can.

        Args:
            aws_auth: Reads `mapRoles` of the ConfigMap aws-auth, which counts unless the cluster takes entries alone,
                or has one of the role.
        """
        extra = self.records.get(cluster)
        mode = self.cluster(cluster).access_config["authenticationMode"] if extra else "API"
        entry = extra.entries.get(role.arn) if extra else None
        by_map = mode == "CONFIG_MAP" or (mode != "API" and entry is None)
        if by_map and is_mapped_node(aws_auth(), f"arn:aws:iam::{self._account_id}:role/{role.name}"):
            return ""
        if entry is None and mode == "CONFIG_MAP":
            return (
                f"the role {role.arn} of the node is not in the ConfigMap aws-auth of the cluster {cluster}; add it to "
                "mapRoles, without its path and with the group system:nodes"
            )
        if extra is None or entry is None:
            return (
                f"the role {role.arn} of the node has no access entry in the cluster {cluster}; create an access "
                "entry of type EC2_LINUX for it"
            )
        if entry["type"] not in NODE_ENTRY_TYPES:
            return (
                f"the access entry of the role {role.arn} in the cluster {cluster} has the type {entry['type']}, "
                "which nodes cannot use; replace it by one of type EC2_LINUX"
            )
        if extra.role_ids.get(role.arn) != role.id:
            return (
                f"the access entry of {role.arn} in the cluster {cluster} belongs to an older role of that name; "
                "create the access entry again"
            )
        return ""

    # Pod identity.

    def create_pod_identity_association(
        self,
        clusterName: str,
        namespace: str,
        serviceAccount: str,
        roleArn: str,
        **rest: Any,
    ) -> dict[str, Any]:
        """CreatePodIdentityAssociation."""
        extra = self._extra(clusterName)
        with self._lock:
            existing = self.association(clusterName, namespace, serviceAccount)
            if existing:
                raise refused("association exists", id=existing["associationId"])
            self._check_pod_role(clusterName, namespace, serviceAccount, roleArn)
            now = clock.utcnow()
            name = "a-" + "".join(secrets.choice(_LETTERS) for _ in range(17))
            made = extra.associations[name] = {
                "clusterName": clusterName,
                "namespace": namespace,
                "serviceAccount": serviceAccount,
                "roleArn": roleArn,
                "associationId": name,
                "tags": rest.get("tags") or {},
                "createdAt": now,
                "associationArn": self._arn(f"podidentityassociation/{clusterName}/{name}"),
                "modifiedAt": now,
                "disableSessionTags": bool(rest.get("disableSessionTags")),
            }
        return {"association": dict(made)}

    def describe_pod_identity_association(self, clusterName: str, associationId: str) -> dict[str, Any]:
        """DescribePodIdentityAssociation."""
        return {"association": dict(self._association(clusterName, associationId))}

    def update_pod_identity_association(self, clusterName: str, associationId: str, **rest: Any) -> dict[str, Any]:
        """UpdatePodIdentityAssociation: the role."""
        found = self._association(clusterName, associationId)
        if rest.get("roleArn"):
            self._check_pod_role(clusterName, found["namespace"], found["serviceAccount"], rest["roleArn"])
        found.update(
            {key: rest[key] for key in ("roleArn", "disableSessionTags") if rest.get(key) is not None},
            modifiedAt=clock.utcnow(),
        )
        return {"association": dict(found)}

    def delete_pod_identity_association(self, clusterName: str, associationId: str) -> dict[str, Any]:
        """DeletePodIdentityAssociation."""
        found = self._association(clusterName, associationId)
        del self._extra(clusterName).associations[associationId]
        return {"association": found}

    def list_pod_identity_associations(
        self,
        clusterName: str,
        namespace: str = "",
        serviceAccount: str = "",
        **paging: Any,
    ) -> dict[str, Any]:
        """ListPodIdentityAssociations, in one page."""
        keys = ("clusterName", "namespace", "serviceAccount", "associationArn", "associationId")
        return {
            "associations": [
                {key: item[key] for key in keys}
                for item in self._extra(clusterName).associations.values()
                if namespace in ("", item["namespace"]) and serviceAccount in ("", item["serviceAccount"])
            ]
        }

    def association(self, cluster: str, namespace: str, service_account: str) -> dict[str, Any] | None:
        """The pod identity association of a service account, or None."""
        extra = self.records.get(cluster)
        for item in list(extra.associations.values()) if extra else ():
            if (item["namespace"], item["serviceAccount"]) == (namespace, service_account):
                return item
        return None

    def pod_trust_refusal(self, cluster: str, namespace: str, service_account: str, role: Any) -> str:
        """Why EKS may not assume a role (moto's) for a pod; empty when it may."""
        context = {
            "aws:SourceAccount": self._account_id,
            "aws:SourceArn": self.cluster_arn(cluster),
            "aws:RequestTag/eks-cluster-arn": self.cluster_arn(cluster),
            "aws:RequestTag/eks-cluster-name": cluster,
            "aws:RequestTag/kubernetes-namespace": namespace,
            "aws:RequestTag/kubernetes-service-account": service_account,
        }
        return policies.trust_refusal(
            role.assume_role_policy_document, "Service", POD_IDENTITY_PRINCIPAL, POD_IDENTITY_ACTIONS, context
        )

    def web_trust_refusal(self, issuer: str, subject: str, audience: str, arn: str) -> str:
        """Why a pod's token does not get a role (IRSA); empty when it does.

        Args:
            issuer: Of the token; the account has a provider for it.
            subject: `system:serviceaccount:<namespace>:<name>`.
        """
        role, provider = self._roles.by_arn(arn), self._roles.provider_for(issuer)
        if role is None:
            return f"the role {arn} does not exist"
        if provider is None:
            return f"the account has no OIDC provider for {issuer}"
        name = issuer.removeprefix("https://")
        return policies.trust_refusal(
            role.assume_role_policy_document,
            "Federated",
            provider.arn,
            ["sts:AssumeRoleWithWebIdentity"],
            {f"{name}:sub": subject, f"{name}:aud": audience},
        )

    # Help for this module and `karpstack.rehearsal.aws.eks.moto`.

    def tags(self, arn: str) -> dict[str, str]:
        """The tags of whatever has this ARN, to be changed in place: moto knows those of clusters only."""
        for name, cluster in list(self.backend.clusters.items()):
            extra = self.records[name]
            owners = [
                (cluster.arn, cluster.tags),
                *((group.arn, group.tags) for group in cluster.nodegroups.values()),
                *((item["addonArn"], item["tags"]) for item in extra.addons.values()),
                *((item["accessEntryArn"], item["tags"]) for item in extra.entries.values()),
                *((item["associationArn"], item["tags"]) for item in extra.associations.values()),
            ]
            for own, tags in owners:
                if own == arn:
                    found: dict[str, str] = tags
                    return found
        raise answer("NotFoundException", f"No resource with ARN {arn} found")

    @property
    def backend(self) -> Any:
        """moto's EKS."""
        from moto.eks.models import eks_backends

        return eks_backends[self._account_id][self._region]

    @property
    def ec2(self) -> Any:
        """moto's EC2."""
        from moto.ec2.models import ec2_backends

        return ec2_backends[self._account_id][self._region]

    @property
    def iam(self) -> Any:
        """moto's IAM."""
        from moto.iam.models import iam_backends

        return iam_backends[self._account_id]["aws"]

    def _arn(self, rest: str) -> str:
        return f"arn:aws:eks:{self._region}:{self._account_id}:{rest}"

    def cluster(self, name: str) -> Any:
        """moto's cluster, or AWS's error of an operation that does not find it."""
        cluster = self.backend.clusters.get(name)
        if cluster is None:
            raise refused("no cluster", name=name)
        return cluster

    def _extra(self, cluster: str) -> Record:
        self.cluster(cluster)
        return self.records[cluster]

    def _access(self, cluster: str) -> Record:
        extra = self._extra(cluster)
        if self.cluster(cluster).access_config["authenticationMode"] == "CONFIG_MAP":
            raise refused("bad mode")
        return extra

    def _known_entry(self, cluster: str, principal: str) -> dict[str, Any]:
        entry = self._access(cluster).entries.get(principal)
        if entry is None:
            raise refused("no entry")
        return entry

    def new_entry(
        self, cluster: str, principal: str, kind: str, groups: list[str], rest: Mapping[str, Any]
    ) -> dict[str, Any]:
        """An access entry as the API shows it, with what the type implies."""
        now = clock.utcnow()
        node = kind in NODE_ENTRY_TYPES
        name = principal.rsplit("/", 1)[-1]
        sort = principal.split(":")[-1].split("/")[0]
        return {
            "clusterName": cluster,
            "principalArn": principal,
            "type": kind,
            "kubernetesGroups": ["system:nodes"] if node else list(groups),
            "username": rest.get("username") or ("system:node:{{EC2PrivateDNSName}}" if node else principal),
            "accessEntryArn": self._arn(
                f"access-entry/{cluster}/{sort}/{self._account_id}/{name}/{secrets.token_hex(16)}"
            ),
            "createdAt": now,
            "modifiedAt": now,
            "tags": rest.get("tags") or {},
        }

    def _check_groups(self, kind: str, groups: list[str], username: str | None) -> None:
        if kind != "STANDARD" and (groups or username):
            raise refused("node groups", type=kind)
        for group in groups:
            if group.startswith("system:"):
                raise refused("bad group", name=group)

    def _principal_id(self, arn: str) -> str:
        """A mark of the principal that changes when it is made again; empty when it does not exist."""
        if f"::{self._account_id}:" not in arn:
            return arn  # another account's: AWS cannot look there either
        if ":role/" in arn:
            role = self._roles.by_arn(arn)
            return str(role.id) if role else ""
        return arn if any(user.arn == arn for user in self.iam.users.values()) else ""

    def _addon(self, cluster: str, addon: str) -> dict[str, Any]:
        found = self._extra(cluster).addons.get(addon)
        if found is None:
            raise refused("no addon", name=addon, cluster=cluster)
        return found

    def _association(self, cluster: str, association: str) -> dict[str, Any]:
        found = self._extra(cluster).associations.get(association)
        if found is None:
            raise refused("no association", id=association)
        return found

    def _check_pod_role(self, cluster: str, namespace: str, service_account: str, arn: str) -> None:
        role = self._roles.by_arn(arn)
        if role is None:
            raise refused("no role")
        reason = self.pod_trust_refusal(cluster, namespace, service_account, role)
        if reason:
            raise refused("bad trust", reason=reason)


def done(kind: str, *parameters: dict[str, str]) -> dict[str, Any]:
    """The answer to a request for an update of a kind, which is done already."""
    now = clock.utcnow()
    update = {"type": kind, "status": "Successful", "params": list(parameters), "createdAt": now, "errors": []}
    return {"update": {"id": str(uuid.uuid4()), **update}}


def is_mapped_node(map_roles: str, arn: str) -> bool:
    """Whether aws-auth makes a role, which it names without a path, a node's.

    Kubernetes lets a node do what it needs only by its user name and its group.
    """
    try:
        entries = yaml.load(map_roles, yaml.CSafeLoader) or []
    except yaml.YAMLError:
        return False
    return isinstance(entries, list) and any(
        isinstance(one, dict)
        and one.get("rolearn") == arn
        and str(one.get("username")).startswith("system:node:{{")
        and "system:nodes" in (one.get("groups") or ())
        for one in entries
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _check_addon_version(addon: str, version: str) -> None:
    if version not in ADDONS[addon]:
        raise refused("unknown addon version")
