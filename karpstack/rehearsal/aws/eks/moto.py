"""moto's EKS, corrected: the wire, clusters, managed node groups and tags.

- Puts the operations of `eks.Eks` on the wire.
- CreateCluster checks role and subnets, makes the cluster security group and the control plane's network
  interfaces (both real in EC2), remembers the access configuration, and makes the creator an administrator unless
  told not to. DeleteCluster takes all of it away. UpdateClusterConfig keeps what it is not told to change.
- CreateNodegroup checks the role, launches the nodes' instances with an instance profile of its own, and makes the
  access entry of the role if there is none; changing the scaling changes the instances; DeleteNodegroup terminates
  them and leaves the access entry, as EKS does. UpdateNodegroupVersion replaces the nodes by those of another release.
- TagResource and its siblings know node groups, add-ons, access entries and associations, not only clusters.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from botocore import xform_name

from karpstack.rehearsal.aws.ec2.images import Image, Images, of_node_group
from karpstack.rehearsal.aws.eks.api import Eks, Record, done
from karpstack.rehearsal.aws.errors import answer, refused
from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.aws.iam.roles import Roles
from karpstack.rehearsal.aws.partitions import session
from karpstack.rehearsal.aws.patching import Patches

_ARCHITECTURES = {
    "AL2023_x86_64_STANDARD": "x86_64",
    "AL2023_ARM_64_STANDARD": "arm64",
    "BOTTLEROCKET_x86_64": "x86_64",
    "BOTTLEROCKET_ARM_64": "arm64",
}
_CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
# EKS's quota of nodes in a group.
_MOST_NODES = 450


class MotoEks:
    """The changes to moto's EKS."""

    def __init__(
        self,
        region: str,
        eks: Eks,
        roles: Roles,
        images: Images,
        follow: Callable[[str], None],
    ) -> None:
        """`images` are the account's machine images; `follow` is told of each deleted cluster that kept logs."""
        self._region = region
        self._eks = eks
        self._roles = roles
        self._images = images
        self._follow = follow
        self._lock = threading.RLock()
        self._access_config: dict[str, Any] | None = None

    def patch(self, patches: Patches) -> None:
        """Install the changes that the module lists."""
        from moto.core.responses import ActionResult
        from moto.core.utils import get_service_model
        from moto.eks import urls, utils
        from moto.eks.models import EKSBackend
        from moto.eks.responses import EKSResponse

        patches.set(utils, "Session", session)  # a new one for each role's ARN otherwise
        model = get_service_model("eks")
        for operation in map(model.operation_model, model.operation_names):
            if method := getattr(self._eks, xform_name(operation.name), None):
                patches.set(EKSResponse, method.__name__, self._handler(method, operation, ActionResult))
        # moto itself finds the operation of a path in the API's model.
        patches.set(urls, "url_paths", {"{0}/(?P<path>.+)$": urls.response.dispatch})
        patches.wrap(EKSResponse, "create_cluster", self._create_cluster_response)
        patches.wrap(EKSResponse, "update_cluster_config", self._update_cluster_response)
        # A function, for moto sees no other methods.
        patches.set(EKSResponse, "update_nodegroup_version", lambda response: self._update_nodegroup_version(response))
        patches.wrap(EKSBackend, "create_cluster", self._create_cluster)
        patches.wrap(EKSBackend, "update_cluster_config", self._update_cluster)
        patches.wrap(EKSBackend, "delete_cluster", self._delete_cluster)
        patches.wrap(EKSBackend, "create_nodegroup", self._create_nodegroup)
        patches.wrap(EKSBackend, "update_nodegroup_config", self._update_nodegroup)
        patches.wrap(EKSBackend, "delete_nodegroup", self._delete_nodegroup)
        patches.set(EKSBackend, "tag_resource", lambda backend, arn, tags: self._eks.tags(arn).update(tags))
        patches.set(EKSBackend, "untag_resource", lambda backend, arn, keys: self._untag(arn, keys))
        patches.set(EKSBackend, "list_tags_for_resource", lambda backend, arn: dict(self._eks.tags(arn)))

    def _handler(
        self, method: Callable[..., Any], operation: Any, result: Callable[[Any], Any]
    ) -> Callable[[Any], Any]:
        members = {
            name: member.serialization.get("name", name) for name, member in operation.input_shape.members.items()
        }

        def handle(response: Any) -> Any:
            given = {name: response._get_param(sent) for name, sent in members.items() if name != "clientRequestToken"}
            given = {name: value for name, value in given.items() if value is not None}
            if "principalArn" in given:
                given["principalArn"] = unquote(given["principalArn"])
            return result(method(**given))

        return handle

    def _create_cluster_response(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Keep the parameters that moto drops: the backend's signature has no place for them."""

        def create(response: Any) -> Any:
            with self._lock:
                self._access_config = response._get_param("accessConfig")
                try:
                    answer = original(response)
                finally:
                    self._access_config = None
            self._keep_dropped(response)
            return answer

        return create

    def _update_cluster_response(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def update(response: Any) -> Any:
            answer = original(response)
            self._keep_dropped(response)
            return answer

        return update

    def _keep_dropped(self, response: Any) -> None:
        """Keep what moto takes no notice of, and shows as soon as its cluster has it."""
        cluster = self._eks.cluster(response._get_param("name"))
        for parameter, attribute in (
            ("zonalShiftConfig", "zonal_shift_config"),
            ("deletionProtection", "deletion_protection"),
            ("upgradePolicy", "upgrade_policy"),
        ):
            if (given := response._get_param(parameter)) is not None:
                setattr(cluster, attribute, given)

    def _create_cluster(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(
            backend: Any,
            name: str,
            role_arn: str,
            resources_vpc_config: dict[str, Any],
            *arguments: Any,
            **options: Any,
        ) -> Any:
            role = self._roles.by_arn(role_arn)
            if role is None or policies.trust_refusal(
                role.assume_role_policy_document, "Service", "eks.amazonaws.com", ["sts:AssumeRole"], {}
            ):
                raise refused("bad role", arn=role_arn)
            subnets = self._subnets(resources_vpc_config.get("subnetIds") or [])
            more = resources_vpc_config.get("securityGroupIds") or []
            self._check_groups(more, subnets[0].vpc_id)
            cluster = original(backend, name, role_arn, resources_vpc_config, *arguments, **options)
            access = {
                "authenticationMode": "CONFIG_MAP",
                "bootstrapClusterCreatorAdminPermissions": True,
                **(self._access_config or {}),
            }
            extra = self._eks.records[name] = Record()
            group = self._make_group(name, subnets[0].vpc_id)
            cluster.resources_vpc_config = {
                "endpointPublicAccess": True,
                "endpointPrivateAccess": False,
                "publicAccessCidrs": ["0.0.0.0/0"],
                "securityGroupIds": [],
                **resources_vpc_config,
                "clusterSecurityGroupId": group.id,
                "vpcId": subnets[0].vpc_id,
            }
            cluster.access_config = access
            cluster.zonal_shift_config, cluster.deletion_protection = {"enabled": False}, False
            cluster.upgrade_policy = {"supportType": "EXTENDED"}
            cluster.identity = {"oidc": {"issuer": self._eks.issuer(name)}}
            extra.interfaces = [
                self._eks.ec2.create_network_interface(
                    subnet,
                    subnet.get_available_subnet_ip(self),
                    group_ids=[group.id, *more],
                    description=f"Amazon EKS {name}",
                ).id
                for subnet in subnets[:2]
            ]
            if access["bootstrapClusterCreatorAdminPermissions"] and access["authenticationMode"] != "CONFIG_MAP":
                arn = self._roles.administrator_arn
                self._eks.create_access_entry(name, arn)
                self._eks.associate_access_policy(name, arn, _CLUSTER_ADMIN, {"type": "cluster"})
            return cluster

        return create

    def _update_cluster(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(backend: Any, name: str, resources_vpc_config: dict[str, Any] | None = None, **options: Any) -> Any:
            """moto replaces the VPC configuration by the request's, EKS changes what the request names."""
            cluster = backend.clusters.get(name)
            if cluster is not None and resources_vpc_config:
                if resources_vpc_config.get("subnetIds"):
                    self._check_zones(cluster, self._subnets(resources_vpc_config["subnetIds"]))
                self._check_groups(
                    resources_vpc_config.get("securityGroupIds") or [], cluster.resources_vpc_config["vpcId"]
                )
                resources_vpc_config = {**cluster.resources_vpc_config, **resources_vpc_config}
            return original(backend, name=name, resources_vpc_config=resources_vpc_config, **options)

        return update

    def _check_zones(self, cluster: Any, subnets: Iterable[Any]) -> None:
        """The zones of the control plane never change (EKS user guide, Change cluster subnets)."""
        fixed = {one.availability_zone for one in self._subnets(cluster.resources_vpc_config["subnetIds"])}
        wanted = {one.availability_zone for one in subnets}
        if wanted != fixed:
            raise answer(
                "InvalidParameterException",
                f"Provided subnets belong to the AZs '{','.join(sorted(wanted))}'. But they should belong to the exact "
                f"set of AZs '{','.join(sorted(fixed))}' in which subnets were provided during cluster creation.",
            )

    def _untag(self, arn: str, keys: list[str] | str) -> None:
        tags = self._eks.tags(arn)
        for key in [keys] if isinstance(keys, str) else keys:
            tags.pop(key, None)

    def _delete_cluster(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def delete(backend: Any, name: str) -> Any:
            protected = backend.clusters.get(name)
            if protected is not None and protected.deletion_protection:
                raise refused("protected", name=name)
            cluster = original(backend, name)
            if any(entry["enabled"] for entry in cluster.logging["clusterLogging"]):
                self._follow(name)
            extra = self._eks.records.pop(name, Record())
            for interface in extra.interfaces:
                if interface in self._eks.ec2.enis:
                    self._eks.ec2.enis[interface].delete()
            with suppress(type(answer("", ""))):  # EKS leaves a group in use, and with it the VPC cannot be deleted
                self._eks.ec2.delete_security_group(group_id=cluster.resources_vpc_config["clusterSecurityGroupId"])
            return cluster

        return delete

    def _create_nodegroup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(
            backend: Any,
            cluster_name: str,
            node_role: str,
            nodegroup_name: str,
            subnets: list[str],
            *arguments: Any,
            **options: Any,
        ) -> Any:
            role = self._roles.by_arn(node_role)
            if role is None or policies.trust_refusal(
                role.assume_role_policy_document, "Service", "ec2.amazonaws.com", ["sts:AssumeRole"], {}
            ):
                raise refused("bad node role", arn=node_role)
            options["ami_type"] = options.get("ami_type") or "AL2023_x86_64_STANDARD"
            if options["ami_type"] not in _ARCHITECTURES:
                raise refused("no image type", known=", ".join(sorted(_ARCHITECTURES)), type=options["ami_type"])
            self._subnets(subnets, zones=1)
            _check_size(options.get("scaling_config"))
            cluster = backend.clusters.get(cluster_name)
            options["version"] = options.get("version") or (cluster.version if cluster else None)
            image = self._node_image(options["ami_type"], str(options["version"]), options.get("release_version"))
            options["release_version"] = image.release
            group = original(backend, cluster_name, node_role, nodegroup_name, subnets, *arguments, **options)
            extra = self._eks.records[cluster_name]
            if node_role not in extra.entries:
                extra.role_ids[node_role] = role.id
                extra.entries[node_role] = self._eks.new_entry(cluster_name, node_role, "EC2_LINUX", [], {})
            self._eks.iam.create_instance_profile(name=f"eks-{group.uuid}", path="/", role_names=[role.name])
            self._scale(extra, group)
            return group

        return create

    def _update_nodegroup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(backend: Any, cluster_name: str, nodegroup_name: str, *arguments: Any, **options: Any) -> Any:
            _check_size(options.get("scaling_config"))
            result = original(backend, cluster_name, nodegroup_name, *arguments, **options)
            extra = self._eks.records[cluster_name]
            self._scale(extra, backend.clusters[cluster_name].nodegroups[nodegroup_name])
            if extra.joining is not None:
                extra.joining(nodegroup_name)
            return result

        return update

    def _update_nodegroup_version(self, response: Any) -> Any:
        """Another release of the image: all nodes are replaced at once, and none is drained."""
        from moto.core.responses import ActionResult

        name = response._get_param("name")
        group = response.eks_backend.describe_nodegroup(name, response._get_param("nodegroupName"))
        version = str(response._get_param("version") or group.version)
        image = self._node_image(group.ami_type, version, response._get_param("releaseVersion"))
        if image.release != group.release_version:
            group.version, group.release_version = version, image.release
            extra = self._eks.records[name]
            old = extra.nodes.pop(group.nodegroup_name, [])
            self._scale(extra, group)
            if old:
                self._eks.ec2.terminate_instances(old)
        return ActionResult(done("VersionUpdate"))

    def _delete_nodegroup(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def delete(backend: Any, cluster_name: str, nodegroup_name: str) -> Any:
            group = original(backend, cluster_name, nodegroup_name)
            ids = self._eks.records[cluster_name].nodes.pop(nodegroup_name, [])
            if ids:
                self._eks.ec2.terminate_instances(ids)
            profile = self._roles.profile(f"eks-{group.uuid}")
            if profile is not None:
                for role in list(profile.roles):
                    self._eks.iam.remove_role_from_instance_profile(profile.name, role.name)
                self._eks.iam.delete_instance_profile(profile.name)
            return group

        return delete

    def _scale(self, extra: Record, group: Any) -> None:
        """Launch or terminate instances until there are as many as desired, spread over the subnets."""
        wanted = int(group.scaling_config["desiredSize"])
        ids = extra.nodes.setdefault(group.nodegroup_name, [])
        if len(ids) > wanted:
            self._eks.ec2.terminate_instances(ids[wanted:])
            del ids[wanted:]
        image = self._node_image(group.ami_type, str(group.version), group.release_version)
        tags = {
            "eks:cluster-name": group.cluster_name,
            "eks:nodegroup-name": group.nodegroup_name,
            f"kubernetes.io/cluster/{group.cluster_name}": "owned",
        }
        template = self._template(group)
        while len(ids) < wanted:
            reservation = self._eks.ec2.run_instances(
                image.id,
                1,
                template.get("UserData"),
                [],
                instance_type=group.instance_types[0],
                is_instance_type_default=False,
                region_name=self._region,
                subnet_id=group.subnets[len(ids) % len(group.subnets)],
                placement=None,
                # Its launch template's alone, where that names any.
                security_group_ids=template.get("SecurityGroupIds") or [self._eks.security_group(group.cluster_name)],
                tags={"instance": tags, "volume": tags},
                nics=[{"DeviceIndex": 0, "DeleteOnTermination": True, "Groups": []}],
                block_device_mappings=[
                    {
                        "DeviceName": "/dev/xvda",
                        "Ebs": {"VolumeSize": int(group.disk_size), "VolumeType": "gp3", "DeleteOnTermination": True},
                    }
                ],
            )
            instance = reservation.instances[0]
            self._eks.ec2.associate_iam_instance_profile(
                instance_id=instance.id, iam_instance_profile_name=f"eks-{group.uuid}"
            )
            ids.append(instance.id)

    def _template(self, group: Any) -> dict[str, Any]:
        """What a node group's launch template says, as the API has it; nothing where it has none."""
        given = group.launch_template or {}
        if not given.get("id"):
            return {}
        template = self._eks.ec2.get_launch_template(given["id"])
        data: dict[str, Any] = template.get_version(str(given.get("version") or "$Default")).data
        return data

    def _node_image(self, ami_type: str, version: str, release: str | None) -> Image:
        """The image of a release, or the newest one."""
        architecture = _ARCHITECTURES[ami_type]
        family = "bottlerocket-aws-k8s-" if ami_type.startswith("BOTTLEROCKET") else "amazon-eks-node-al2023-"
        found = [
            image
            for image in self._images.known.values()
            if image.name.startswith(family)
            and image.architecture == architecture
            and f"-{version}-" in image.name
            and "nvidia" not in image.name
            and "neuron" not in image.name
        ]
        if not found:
            raise answer(
                "InvalidParameterException",
                f"Requested Nodegroup release version for Kubernetes {version} is invalid: the rehearsal "
                f"has no image for it",
            )
        if not release:
            return next(image for image in found if image.latest)
        image = next((image for image in found if image.release == release), None)
        if image is None and family.startswith("amazon"):
            image = of_node_group(architecture, version, release)
            if image and image.id not in self._images.known:
                self._images.add(image)
            elif image:
                image = None  # that day's image has another kubelet
        if image is None:
            raise refused("bad release", release=release, version=version)
        return image

    def _subnets(self, ids: list[str], zones: int = 2) -> list[Any]:
        known = {name: subnet for subnets in self._eks.ec2.subnets.values() for name, subnet in subnets.items()}
        for name in ids:
            if name not in known:
                raise refused("no subnet", id=name)
        found = [known[name] for name in ids]
        if len({subnet.availability_zone for subnet in found}) < zones:
            raise refused("one zone")
        if len({subnet.vpc_id for subnet in found}) > 1:
            raise refused("two networks")
        # One subnet a zone first: the control plane has its interfaces in two zones.
        return sorted(
            found,
            key=lambda subnet: [other.availability_zone for other in found[: found.index(subnet)]].count(
                subnet.availability_zone
            ),
        )

    def _check_groups(self, ids: list[str], vpc_id: str) -> None:
        """Further groups of the control plane's interfaces."""
        for name in ids:
            if name not in self._eks.ec2.groups.get(vpc_id, {}):
                raise refused("foreign group", id=name, vpc=vpc_id)

    def _make_group(self, cluster: str, vpc_id: str) -> Any:
        name = f"eks-cluster-sg-{cluster}-{secrets.randbelow(10**10):010d}"
        group = self._eks.ec2.create_security_group(
            name,
            "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as "
            "well as any managed workloads.",
            vpc_id=vpc_id,
            tags={"Name": name, "aws:eks:cluster-name": cluster, f"kubernetes.io/cluster/{cluster}": "owned"},
        )
        self._eks.ec2.authorize_security_group_ingress(
            group.id, "-1", None, None, [], source_groups=[{"GroupId": group.id}], vpc_id=vpc_id
        )
        return group


def _check_size(scaling: dict[str, Any] | None) -> None:
    wanted = int((scaling or {}).get("desiredSize") or 0)
    if wanted > _MOST_NODES:
        raise refused("too many nodes", most=_MOST_NODES, wanted=wanted)
