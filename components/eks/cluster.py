"""The EKS control plane: encrypted secrets, logs, private endpoint, access by API only, no add-ons of its own.

EKS would install the VPC CNI and kube-proxy by itself; `bootstrap_self_managed_addons=False` prevents it and
can be chosen at creation only. CoreDNS goes with them, so `addons` brings it back. Nodes are not made here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network

import pulumi
from pulumi_aws import cloudwatch, ec2, eks, iam, kms

from ..documents.iam import service_trust
from ..documents.kubeconfig import eks as eks_kubeconfig
from ..kubernetes import live, private_access_warning
from ..naming import DISCOVERY_TAG
from ..replacement import Keeper
from ..settings.eks import ClusterSettings
from .scope import Scope


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """Arguments of `Cluster`.

    Attributes:
        scope: Whose it is.
        profile, role_arn: For the kubeconfig, see `documents.kubeconfig.eks`.
        settings: Its admins are `Access`'s.
        zonal_shift: Whether AWS may take traffic away from a zone that fails. Karpenter stops at once where it is told
            to look at that and the cluster is not enabled for it.
        vpc_id: Of an existing VPC; empty for one of the stack's own.
        vpc_cidr: A range of the VPC.
        subnet_ids: Private subnets in at least two zones.
        security_group_ids: Further groups of the control plane's interfaces.
        after: What must be there before the cluster is talked to: the rules of these groups.
        service_cidr: Range of service addresses; never changes afterwards.
        keeper: Keeps the cluster and its key.
        is_new: Whether the stack has no cluster yet that an `up` has ended well with.
    """

    scope: Scope
    profile: str
    role_arn: str
    settings: ClusterSettings
    zonal_shift: bool
    vpc_id: str = ""
    vpc_cidr: IPv4Network
    subnet_ids: pulumi.Input[Sequence[pulumi.Input[str]]]
    security_group_ids: Sequence[pulumi.Input[str]] = ()
    after: Sequence[pulumi.Resource] = ()
    service_cidr: IPv4Network
    keeper: Keeper
    is_new: bool


class Cluster(pulumi.ComponentResource):
    """The cluster, its role, its key, the discovery tag on its security group; and its log group, which outlives it."""

    name: pulumi.Output[str]
    arn: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    issuer: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("karpstack:eks:Cluster", name, {}, opts)

        role, attachment = self._role(name, args)
        key = self._key(name, args)
        logs = cloudwatch.LogGroup(
            f"{name}-logs",
            name=args.scope.names.control_plane_log_group,
            retention_in_days=args.settings.log_retention_days,
            tags=args.scope.tags,
            opts=self._kept(args),
        )
        cluster = self._control_plane(name, args, role, key, [attachment, logs])

        self.security_group_id = cluster.vpc_config.apply(lambda config: config.cluster_security_group_id or "")
        # EKS makes this group, so its tags are no argument of the cluster. Both kinds of nodes carry it, and
        # it admits everything between its members: Cilium's vxlan (UDP 8472) needs no rule of its own.
        ec2.Tag(
            f"{name}-discovery",
            resource_id=self.security_group_id,
            key=DISCOVERY_TAG,
            value=args.scope.names.cluster,
            opts=pulumi.ResourceOptions(parent=self),
        )

        self.name = cluster.name
        self.arn = cluster.arn
        self.endpoint = cluster.endpoint
        self.issuer = cluster.identities.apply(_issuer)
        self.kubeconfig = pulumi.Output.secret(
            pulumi.Output.all(
                cluster_name=cluster.name,
                endpoint=cluster.endpoint,
                certificate_authority=cluster.certificate_authority.apply(lambda authority: authority.data or ""),
            ).apply(partial(_served, args))
        )
        self.register_outputs(
            {
                "name": self.name,
                "arn": self.arn,
                "endpoint": self.endpoint,
                "issuer": self.issuer,
                "securityGroupId": self.security_group_id,
                "kubeconfig": self.kubeconfig,
            }
        )

    def _role(self, name: str, args: ClusterArgs) -> tuple[iam.Role, pulumi.Resource]:
        """Return the control plane's role, and what must be there for it to have its rights."""
        child = pulumi.ResourceOptions(parent=self)
        role = iam.Role(
            f"{name}-role",
            name=args.scope.names.cluster_role,
            description=f"Control plane of the EKS cluster {args.scope.names.cluster}",
            assume_role_policy=json.dumps(service_trust("eks.amazonaws.com")),
            tags=args.scope.tags,
            opts=child,
        )
        attachment = iam.RolePolicyAttachment(
            f"{name}-role-policy",
            role=role.name,
            policy_arn=pulumi.Output.concat("arn:", args.scope.partition, ":iam::aws:policy/AmazonEKSClusterPolicy"),
            opts=child,
        )
        return role, attachment

    def _key(self, name: str, args: ClusterArgs) -> kms.Key:
        """Return the key that encrypts the cluster's secrets."""
        key = kms.Key(
            f"{name}-secrets",
            description=f"Kubernetes secrets of the EKS cluster {args.scope.names.cluster}",
            enable_key_rotation=True,
            # The shortest grace that KMS allows: without its cluster the key protects nothing.
            deletion_window_in_days=7,
            tags=args.scope.tags,
            opts=pulumi.ResourceOptions(
                parent=self, hooks=args.keeper.hooks(f"{name}-secrets", lost="every secret of the cluster")
            ),
        )
        kms.Alias(
            f"{name}-secrets",
            name=args.scope.names.secrets_key_alias,
            target_key_id=key.id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return key

    def _control_plane(
        self, name: str, args: ClusterArgs, role: iam.Role, key: kms.Key, after: Sequence[pulumi.Resource]
    ) -> eks.Cluster:
        return eks.Cluster(
            f"{name}-control-plane",
            name=args.scope.names.cluster,
            version=args.settings.version,
            role_arn=role.arn,
            bootstrap_self_managed_addons=False,
            vpc_config=eks.ClusterVpcConfigArgs(
                subnet_ids=args.subnet_ids,
                security_group_ids=list(args.security_group_ids) or None,
                endpoint_private_access=True,
                endpoint_public_access=bool(args.settings.public_access_cidrs),
                # Unset, AWS opens the endpoint to the world; set on a closed one, AWS refuses it.
                public_access_cidrs=[str(cidr) for cidr in args.settings.public_access_cidrs] or None,
            ),
            kubernetes_network_config=eks.ClusterKubernetesNetworkConfigArgs(service_ipv4_cidr=str(args.service_cidr)),
            access_config=eks.ClusterAccessConfigArgs(
                authentication_mode="API",
                # The deployer installs Cilium and Karpenter; all other access is `access`'s.
                bootstrap_cluster_creator_admin_permissions=True,
            ),
            encryption_config=eks.ClusterEncryptionConfigArgs(
                provider=eks.ClusterEncryptionConfigProviderArgs(key_arn=key.arn),
                resources=["secrets"],
            ),
            enabled_cluster_log_types=list(args.settings.log_types),
            # Said in either case: left out, what is on would stay on.
            zonal_shift_config=eks.ClusterZonalShiftConfigArgs(enabled=args.zonal_shift),
            upgrade_policy=eks.ClusterUpgradePolicyArgs(support_type=args.settings.support_type.upper()),
            deletion_protection=args.settings.deletion_protection,
            tags=args.scope.tags,
            opts=pulumi.ResourceOptions(
                parent=self,
                # On the way down EKS still uses its role to remove network interfaces.
                depends_on=[*after, *args.after],
                # EKS refuses when all the rest of the stack is gone, Pulumi before it begins.
                protect=args.settings.deletion_protection and not args.keeper.allowed,
                # EKS takes only subnets in the zones that the cluster was made with; further ones are for nodes.
                ignore_changes=None if args.vpc_id or args.keeper.allowed else ["vpcConfig.subnetIds"],
                hooks=args.keeper.hooks(
                    f"{name}-control-plane",
                    lost="the cluster, with everything that runs in it,",
                    before_create=_warnings(name, args),
                ),
            ),
        )

    def _kept(self, args: ClusterArgs) -> pulumi.ResourceOptions:
        """Options of the log group, which stays when the stack goes, and is taken over where it is there already.

        EKS writes its last lines when a cluster is gone already, and would make the group again, with no limit on the
        age of its lines, in the way of the next cluster of that name.
        """
        ask = pulumi.InvokeOptions(parent=self)
        group = args.scope.names.control_plane_log_group
        is_there = group in cloudwatch.get_log_groups(log_group_name_prefix=group, opts=ask).log_group_names
        is_up = is_there and args.scope.names.cluster in eks.get_clusters(opts=ask).names
        is_left_over = is_there and not is_up
        return pulumi.ResourceOptions(
            parent=self,
            retain_on_delete=True,
            # Of what is in the stack's state this changes nothing.
            import_=group if is_there else None,
            # Pulumi refuses to take over what it would have to change; the update after that changes it.
            ignore_changes=["retentionInDays", "tags"] if is_left_over else None,
        )


async def _served(args: ClusterArgs, known: Mapping[str, str]) -> str:
    """Return the kubeconfig, once it works: an ACTIVE cluster needs a moment to know its address and its maker.

    What needs the cluster needs this, so it does not begin where the API server never answers.
    """
    made = eks_kubeconfig(region=args.scope.region, profile=args.profile, role_arn=args.role_arn, **known)
    if args.is_new and not pulumi.runtime.is_dry_run():
        await live.wait_until_served(made)
    return made


def _warnings(name: str, args: ClusterArgs) -> list[pulumi.ResourceHook]:
    """Warn before a cluster without a public endpoint is made in an existing VPC."""
    if args.settings.public_access_cidrs or not args.vpc_id:
        return []
    networks, destination = args.settings.private_access_cidrs, args.vpc_cidr[1]
    return [private_access_warning(f"{name}-another-way", networks=networks, destination=destination)]


def _issuer(identities: Sequence[eks.outputs.ClusterIdentity]) -> str:
    return next((oidc.issuer for identity in identities for oidc in identity.oidcs or () if oidc.issuer), "")
