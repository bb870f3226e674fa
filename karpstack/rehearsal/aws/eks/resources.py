"""EKS: the cluster, its add-ons, who may use it, and the identities of its pods.

Creating the cluster starts a control plane; creating an add-on applies its workload there and waits for it. The
account (`karpstack.rehearsal.aws.eks.api`) checks requests and keeps what EKS keeps.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from karpstack.karpenter import fact_dates, releases
from karpstack.karpenter.ranges import NOT_PUBLIC, within
from karpstack.rehearsal.attachment.resource import UNKNOWN, Failure, Properties, RefusedError
from karpstack.rehearsal.aws.eks.addon_workloads import NAMESPACE, WORKLOADS, manifests, refusal
from karpstack.rehearsal.aws.eks.api import WEB_IDENTITY_AUDIENCE
from karpstack.rehearsal.aws.iam.policies import decision
from karpstack.rehearsal.aws.resource import AwsRefusalError, AwsResource, Session
from karpstack.rehearsal.cluster import control_plane

#: Seconds that the rehearsal gives an add-on; EKS takes up to 20 minutes, but here a pod starts within seconds.
ADDON_SECONDS = 90.0

UNSUPPORTED_VERSION = "unsupported Kubernetes version {version}"
NOT_PUBLIC_CIDRS = "The following CIDRs are not allowed in publicAccessCidrs: [{cidrs}]"
BAD_SERVICE_CIDR = "The CIDR block {cidr} is not valid for serviceIpv4Cidr: it overlaps with {other} of the VPC {vpc}"
FAILED_ADDON = (
    "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: InsufficientNumberOfReplicas: "
    "The add-on is unhealthy because it doesn't have the desired number of replicas. {reason}"
)
_ENDPOINT_DEFAULTS = {"endpointPrivateAccess": False, "endpointPublicAccess": True}
NO_CLUSTER = "No cluster found for name: {name}."

#: What EKS puts into a new cluster by itself (`bootstrapSelfManagedAddons`); an add-on of the name takes it over.
_SELF_MANAGED = ("vpc-cni", "kube-proxy", "coredns")
_DEFAULT_SERVICE_CIDR = "172.20.0.0/16"
_PRIVATE = tuple(ipaddress.IPv4Network(block) for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))


class EksResource(AwsResource):
    """An EKS type."""

    def control_plane(self, cluster: str) -> control_plane.Cluster:
        """The running control plane of a cluster."""
        found = self.session.clusters.get(cluster)
        if found is None:
            raise AwsRefusalError("ResourceNotFoundException", NO_CLUSTER.format(name=cluster))
        return found


class Cluster(EksResource):
    """A cluster and its control plane. ID: its name."""

    type = "aws:eks/cluster:Cluster"

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        """As for every type; who may reach the endpoint has defaults of its own."""
        access = inputs.get("vpcConfig")
        if isinstance(access, Mapping):
            inputs = {**inputs, "vpcConfig": {**_ENDPOINT_DEFAULTS, **access}}
        return super().check(inputs, name=name)

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """What needs no account to be refused."""
        network = inputs.get("kubernetesNetworkConfig")
        cidr = network.get("serviceIpv4Cidr") if isinstance(network, dict) else None
        if isinstance(cidr, str):
            yield from _service_cidr_failures(cidr)

    def preview(self, inputs: Properties, *, id: str, state: Properties) -> Properties:
        """As for every type; what EKS chooses inside vpcConfig is unknown until it has chosen."""
        found = super().preview(inputs, id=id, state=state)
        if isinstance(access := found.get("vpcConfig"), dict):
            cluster = self.account.eks.backend.clusters.get(id)
            made = cluster.resources_vpc_config if cluster else {}
            chosen = {name: made.get(name, UNKNOWN) for name in ("clusterSecurityGroupId", "vpcId")}
            found["vpcConfig"] = {**chosen, **access}
        return found

    def make(self, inputs: Properties) -> str:
        """create_cluster."""
        offered = releases.offered("aws", fact_dates.played("aws", fact_dates.today()))
        version = inputs.get("version", offered[-1])
        if version not in offered:
            raise AwsRefusalError("InvalidParameterException", UNSUPPORTED_VERSION.format(version=version))
        _check_public_access(inputs["vpcConfig"])
        self._check_service_cidr(inputs)
        request = {
            "name": inputs["name"],
            "version": version,
            "roleArn": inputs["roleArn"],
            "resourcesVpcConfig": inputs["vpcConfig"],
            "tags": self.tags(inputs),
            "bootstrapSelfManagedAddons": inputs["bootstrapSelfManagedAddons"],
            "logging": _logging(inputs.get("enabledClusterLogTypes") or []),
        }
        for name in (
            "kubernetesNetworkConfig",
            "accessConfig",
            "zonalShiftConfig",
            "deletionProtection",
            "upgradePolicy",
        ):
            if inputs.get(name):
                request[name] = inputs[name]
        if inputs.get("encryptionConfig"):
            # A key that does not exist is found here, as EKS finds it: with the error of KMS.
            self.account.client("kms").describe_key(KeyId=inputs["encryptionConfig"]["provider"]["keyArn"])
            request["encryptionConfig"] = [inputs["encryptionConfig"]]
        self.client.create_cluster(**request)
        return str(inputs["name"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Start the control plane, publish where it is, and install what EKS installs by itself unless told not to."""
        services = _service_cidr(inputs)
        try:
            running = start_control_plane(self.session, id, services, self.account.timing.deployer_known)
        except ValueError as error:
            # Not what AWS would refuse, but what one machine cannot do: another version, a second cluster.
            raise RefusedError(str(error)) from error
        for addon in _SELF_MANAGED if inputs["bootstrapSelfManagedAddons"] else ():
            running.apply(manifests(addon, "", running, _dns(services)))

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Version, endpoint access, subnets, logs, zonal shift, protection and support; the rest has no stand-in."""
        differs = self.differs(old, new)
        by_itself = {"zonalShiftConfig", "deletionProtection", "upgradePolicy"}
        beyond = differs - {"version", "vpcConfig", "enabledClusterLogTypes", *by_itself}
        if beyond:
            names = ", ".join(sorted(beyond))
            raise AwsRefusalError(
                "InvalidParameterException",
                f"the rehearsal cannot change {names} of a running cluster; take the stack down and create it again",
            )
        if "version" in differs:
            self._upgrade(id, new["version"])
        if "vpcConfig" in differs:
            _check_public_access(new["vpcConfig"])
            self.client.update_cluster_config(name=id, resourcesVpcConfig=new["vpcConfig"])
        for name in sorted(differs & by_itself):
            self.client.update_cluster_config(name=id, **{name: new[name]})
        if "enabledClusterLogTypes" in differs:
            self.client.update_cluster_config(name=id, logging=_logging(new.get("enabledClusterLogTypes") or []))

    def _upgrade(self, id: str, version: str) -> None:
        try:
            self.session.clusters.check_version(version)
        except ValueError as error:  # not what AWS would refuse
            raise RefusedError(str(error)) from error
        self.client.update_cluster_version(name=id, version=version)
        self.session.clusters.upgrade(id, version)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Delete it, unless it has node groups, and stop the control plane."""
        try:
            super().remove(id, state, timeout)
        except ClientError as error:
            if not self.is_gone(error):
                raise
        self.session.clusters.stop(id)

    def _check_service_cidr(self, inputs: Properties) -> None:
        ec2 = self.account.client("ec2")
        subnets = ec2.describe_subnets(SubnetIds=inputs["vpcConfig"]["subnetIds"])["Subnets"]
        services = ipaddress.ip_network(_service_cidr(inputs))
        for vpc in ec2.describe_vpcs(VpcIds=sorted({subnet["VpcId"] for subnet in subnets}))["Vpcs"]:
            if services.overlaps(ipaddress.ip_network(vpc["CidrBlock"])):
                raise AwsRefusalError(
                    "InvalidParameterException",
                    BAD_SERVICE_CIDR.format(cidr=services, other=vpc["CidrBlock"], vpc=vpc["VpcId"]),
                )


def start_control_plane(
    session: Session, name: str, service_cidr: str, deployer_known: float | None
) -> control_plane.Cluster:
    """Start the control plane of a cluster that EKS has, and let EKS say where it is.

    Args:
        session: Of the account.
        name: Name of the cluster.
        service_cidr: Range of its Services.
        deployer_known: As `Clusters.start` has it.

    Raises:
        ValueError: This machine cannot run it.
    """
    account = session.account
    cloud = account.cloud(name)
    started = session.clusters.start(
        name,
        version=account.eks.version(name),
        service_cidr=service_cidr,
        issuer=account.eks.issuer(name),
        cloud=cloud,
        deployer_known=deployer_known,
        deployer=session.deployer,
        token=account.cluster_token(name),
    )
    cloud.bind(started)
    account.eks.set_endpoint(name, started.endpoint, started.certificate_authority)
    return started


def _check_public_access(network: Mapping[str, Any]) -> None:
    """What is seen to be refused; EKS publishes no list (karpenter.ranges)."""
    networks = [ipaddress.ip_network(cidr) for cidr in network.get("publicAccessCidrs") or []]
    refused = [
        str(one) for one in networks if isinstance(one, ipaddress.IPv4Network) and within(one, NOT_PUBLIC) is not None
    ]
    if refused:
        raise AwsRefusalError("InvalidParameterException", NOT_PUBLIC_CIDRS.format(cidrs=", ".join(refused)))


class Addon(EksResource):
    """An add-on, ready when its workload is. ID: `<cluster>:<add-on>`."""

    type = "aws:eks/addon:Addon"

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """The rehearsal runs some add-ons only."""
        name = inputs["addonName"]
        if not isinstance(name, str):
            return
        if name not in WORKLOADS:
            yield Failure(
                "addonName",
                f"the rehearsal has no workload for the add-on {name!r}; it has "
                f"{', '.join(sorted(WORKLOADS))}: leave {name} out",
                unsupported=True,
            )
        elif inputs.get("serviceAccountRoleArn") and not WORKLOADS[name].service_account:
            yield Failure("serviceAccountRoleArn", f"pods of the add-on {name} take no role; leave it out")

    def make(self, inputs: Properties) -> str:
        """create_addon."""
        self._check_configuration(inputs)
        return super().make(inputs)

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Apply the workload and wait for it."""
        cluster, addon = inputs["clusterName"], inputs["addonName"]
        running = self.control_plane(cluster)
        running.apply(self.manifests(cluster, addon))
        problem = self._without_rights(cluster, addon, inputs.get("serviceAccountRoleArn") or "")
        for kind, name in () if problem else WORKLOADS[addon].awaited:
            problem = problem or running.wait_available(kind, NAMESPACE, name, min(timeout, ADDON_SECONDS))
        self.account.eks.settle_addon(cluster, addon, problem)
        if problem:
            raise RefusedError(FAILED_ADDON.format(reason=problem))

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """The version and the configuration; how conflicts are resolved is only of use then."""
        differs = self.differs(old, new) & {"addonVersion", "configurationValues", "serviceAccountRoleArn"}
        given = {name: new[name] for name in sorted(differs) if new.get(name)}
        if not given:
            return
        self._check_configuration(new)
        self.client.update_addon(clusterName=new["clusterName"], addonName=new["addonName"], **given)
        if given.keys() - {"addonVersion"}:
            self.complete(id, new, timeout)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_addon and, unless it is to be preserved, its workload."""
        cluster, _, addon = id.partition(":")
        running = self.session.clusters.get(cluster)
        if running is not None and not state.get("preserve"):
            running.delete(self.manifests(cluster, addon))
        super().remove(id, state, timeout)

    def manifests(self, cluster: str, addon: str) -> list[dict[str, Any]]:
        """The workload of an add-on in a cluster."""
        described = self.client.describe_cluster(name=cluster)["cluster"]
        services = described["kubernetesNetworkConfig"]["serviceIpv4Cidr"]
        made = self.client.describe_addon(clusterName=cluster, addonName=addon)["addon"]
        values, role = made.get("configurationValues", ""), made.get("serviceAccountRoleArn", "")
        return manifests(addon, values, self.control_plane(cluster), _dns(services), role)

    def _check_configuration(self, inputs: Properties) -> None:
        values = inputs.get("configurationValues") or ""
        if refused := refusal(inputs["addonName"], values, self.control_plane(inputs["clusterName"])):
            raise AwsRefusalError("InvalidParameterException", refused)

    def _without_rights(self, cluster: str, addon: str, own: str) -> str:
        """Why the add-on's pods crash for lack of rights; empty when they do not. `own`: their role by IRSA."""
        need, name = WORKLOADS[addon].need, WORKLOADS[addon].service_account
        whose, eks = f"service account {NAMESPACE}/{name}", self.account.eks
        association = eks.association(cluster, NAMESPACE, name)
        arn = association["roleArn"] if association else own
        if not arn:
            why = "no EC2 IMDS role found, and no pod identity association gives them one"
            return f"pods of the {whose} crash: {why}" if need else ""
        subject = f"system:serviceaccount:{NAMESPACE}:{name}"
        if not association and (
            reason := eks.web_trust_refusal(eks.issuer(cluster), subject, WEB_IDENTITY_AUDIENCE, arn)
        ):
            return f"pods of the {whose} crash: {reason}"
        role = self.account.roles.by_arn(arn)
        documents = self.account.roles.documents(role) if role else []
        said = decision(documents, need.action, need.resource, need.context) if need else "allowed"
        if said != "allowed" and need:
            return f"pods of the {whose} crash: the role {arn} does not allow {need.action}: {said}"
        return ""


def _dns(services: str) -> str:
    """Address of the cluster's DNS, which EKS prescribes."""
    return str(ipaddress.ip_network(services)[10])


def _service_cidr(inputs: Properties) -> str:
    return str((inputs.get("kubernetesNetworkConfig") or {}).get("serviceIpv4Cidr") or _DEFAULT_SERVICE_CIDR)


def _service_cidr_failures(cidr: str) -> Iterator[Failure]:
    key = "kubernetesNetworkConfig"
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        yield Failure(key, f"serviceIpv4Cidr {cidr!r} is no network: {error}; write it like 172.20.0.0/16")
        return
    if not 12 <= network.prefixlen <= 24:
        yield Failure(
            key,
            "expected serviceIpv4Cidr to contain a network Value with between 12 and 24 significant "
            f"bits, got {network.prefixlen} in {cidr}",
        )
    if not any(network.subnet_of(private) for private in _PRIVATE):
        yield Failure(key, f"serviceIpv4Cidr must be within {', '.join(map(str, _PRIVATE))}, got {cidr}")


def _logging(kinds: list[str]) -> dict[str, Any]:
    every = ("api", "audit", "authenticator", "controllerManager", "scheduler")
    entries = [
        {"types": [kind for kind in every if (kind in kinds) is enabled], "enabled": enabled}
        for enabled in (True, False)
    ]
    return {"clusterLogging": [entry for entry in entries if entry["types"]]}
