"""EKS's managed node group: instances in the account, nodes in the cluster, and the wait between the two.

Simplified: nodes take security groups and user data from the launch template, without the NodeConfig that EKS puts
behind it, and a new version of it replaces no node. What EKS finds wrong with it at the first node is refused before.
Absent: upgrades of Kubernetes, and changes of the labels and taints of running nodes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from email import message_from_bytes

from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.aws.eks.resources import EksResource
from karpstack.rehearsal.aws.resource import AwsRefusalError
from karpstack.rehearsal.cluster.cloud import Machine

#: Seconds that the rehearsal gives nodes to become Ready; EKS takes 15 minutes and more, but here a node is Ready
#: within seconds of its network plugin.
JOIN_SECONDS = 90.0

NOT_JOINED = (
    "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: {instances}: NodeCreationFailure: "
    "Instances failed to join the kubernetes cluster. {reason}"
)
NOT_READY = (
    "{nodes} registered and did not become Ready in {seconds:g} s: a node is Ready when a network plugin runs "
    "on it, so deploy Cilium before the node group"
)
#: EKS's user guide, "Customize managed nodes with launch templates"; aws-ia/terraform-aws-eks-blueprints#843.
NOT_MIME = (
    "unexpected state 'CREATE_FAILED', wanted target 'ACTIVE'. last error: Ec2LaunchTemplateInvalidConfiguration: User "
    "data was not in the MIME multipart format."
)
NO_TYPE = "The following supplied instance types do not exist: [{types}]"
OTHER_VPC = "Subnet(s) [{subnets}] are not in the VPC {vpc} of the cluster"
BAD_SIZES = "desired capacity {desired} can't be {how} {which} size {size}"

#: EKS's word for an effect, and Kubernetes's.
EFFECTS = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


class NodeGroup(EksResource):
    """A managed node group. ID: `<cluster>:<node group>`."""

    type = "aws:eks/nodeGroup:NodeGroup"

    def make(self, inputs: Properties) -> str:
        """create_nodegroup, after what EKS checks and moto does not."""
        self._check(inputs)
        return super().make(inputs)

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Let the instances join and wait until their nodes are Ready."""
        seconds = min(timeout, JOIN_SECONDS)
        waiting = self.join(id, inputs, seconds)
        if waiting:
            text = NOT_READY.format(nodes=", ".join(sorted(waiting)), seconds=seconds)
            raise self._failure(self._machines(id), text)

    def join(self, id: str, inputs: Properties, seconds: float) -> list[str]:
        """Let the instances join; the nodes that are not Ready after so many seconds.

        Raises:
            RefusedError: One may not.
        """
        machines = self._machines(id)
        outcasts = [f"{machine.node_name}: {machine.refusal}" for machine in machines if machine.refusal]
        if outcasts:
            raise self._failure(machines, "; ".join(outcasts))
        return self.control_plane(inputs["clusterName"]).join(
            machines, taints=_taints(inputs.get("taints") or []), labels=self._labels(inputs), timeout=seconds
        )

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Size, update settings, version and the image's release; nodes come and go with all but the second."""
        differs = self.differs(old, new)
        beyond = differs - {"scalingConfig", "updateConfig", "launchTemplate", "releaseVersion", "version"}
        if beyond:
            names = ", ".join(sorted(beyond))
            raise AwsRefusalError(
                "InvalidParameterException",
                f"the rehearsal cannot change {names} of running nodes; take the stack down and create it again",
            )
        self._check_sizes(new["scalingConfig"])
        cluster, _, name = id.partition(":")
        before = {machine.node_name for machine in self._machines(id)}
        settings = {key: new[key] for key in ("scalingConfig", "updateConfig") if new.get(key)}
        self.client.update_nodegroup_config(clusterName=cluster, nodegroupName=name, **settings)
        if differs & {"releaseVersion", "version"}:
            # Without a release, EKS takes the newest of the version.
            release = {"releaseVersion": new["releaseVersion"]} if new.get("releaseVersion") else {}
            self.client.update_nodegroup_version(
                clusterName=cluster, nodegroupName=name, version=new["version"], **release
            )
        gone = before - {machine.node_name for machine in self._machines(id)}
        if gone:
            self.control_plane(cluster).remove_nodes(sorted(gone))
        self.complete(id, new, timeout)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Drain its nodes, as EKS does, take them out of the cluster, and delete the group with the instances."""
        cluster = id.partition(":")[0]
        running = self.session.clusters.get(cluster)
        if running is not None:
            names = [machine.node_name for machine in self._machines(id)]
            running.drain(names, self.account.timing.condition)
            running.remove_nodes(names)
        super().remove(id, state, timeout)

    def _machines(self, id: str) -> list[Machine]:
        cluster, _, name = id.partition(":")
        cloud = self.account.cloud(cluster)
        found = [cloud.machine(provider_id) for provider_id in self.account.eks.node_instances(cluster, name)]
        return [machine for machine in found if machine is not None]

    def _labels(self, inputs: Properties) -> dict[str, str]:
        """What EKS's bootstrap puts on a node, and the group's own labels."""
        template = inputs.get("launchTemplate") or {}
        source = {"eks.amazonaws.com/sourceLaunchTemplateId": str(template["id"])} if template.get("id") else {}
        return {
            "eks.amazonaws.com/nodegroup": inputs["nodeGroupName"],
            "eks.amazonaws.com/capacityType": inputs.get("capacityType", "ON_DEMAND"),
            **source,
            **(inputs.get("labels") or {}),
        }

    def _failure(self, machines: Iterable[Machine], reason: str) -> RefusedError:
        instances = ", ".join(machine.provider_id.rpartition("/")[2] for machine in machines)
        return RefusedError(NOT_JOINED.format(instances=instances, reason=reason))

    def _check(self, inputs: Properties) -> None:
        ec2 = self.account.client("ec2")
        self._check_sizes(inputs["scalingConfig"])
        vpc = self.client.describe_cluster(name=inputs["clusterName"])["cluster"]["resourcesVpcConfig"]["vpcId"]
        subnets = ec2.describe_subnets(SubnetIds=inputs["subnetIds"])["Subnets"]
        foreign = sorted(subnet["SubnetId"] for subnet in subnets if subnet["VpcId"] != vpc)
        if foreign:
            raise AwsRefusalError("InvalidParameterException", OTHER_VPC.format(subnets=", ".join(foreign), vpc=vpc))
        kinds = set(inputs.get("instanceTypes") or [])
        offers = (
            ec2.get_paginator("describe_instance_type_offerings").paginate(
                Filters=[{"Name": "instance-type", "Values": sorted(kinds)}]
            )
            if kinds
            else []
        )
        missing = kinds - {offer["InstanceType"] for page in offers for offer in page["InstanceTypeOfferings"]}
        if missing:
            raise AwsRefusalError("InvalidParameterException", NO_TYPE.format(types=", ".join(sorted(missing))))
        template = inputs.get("launchTemplate")
        if template:
            name, version = template.get("id") or template["name"], str(template["version"])
            key = "LaunchTemplateId" if template.get("id") else "LaunchTemplateName"
            (found,) = ec2.describe_launch_template_versions(**{key: name}, Versions=[version])[
                "LaunchTemplateVersions"
            ]
            if not _is_mime(found["LaunchTemplateData"].get("UserData", ""), inputs.get("amiType") or ""):
                raise RefusedError(NOT_MIME)

    def _check_sizes(self, sizes: Mapping[str, int]) -> None:
        desired, least, most = sizes["desiredSize"], sizes["minSize"], sizes["maxSize"]
        for wrong, how, which, size in (
            (desired < least, "less than", "min", least),
            (desired > most, "greater than", "max", most),
        ):
            if wrong:
                raise AwsRefusalError(
                    "InvalidParameterException", BAD_SIZES.format(desired=desired, how=how, which=which, size=size)
                )


def _is_mime(user_data: str, ami_type: str) -> bool:
    """Whether EKS can put something of its own behind it; Bottlerocket's is TOML."""
    if not user_data or ami_type.startswith("BOTTLEROCKET"):
        return True
    return message_from_bytes(base64.b64decode(user_data)).is_multipart()


def _taints(taints: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    return [{**taint, "effect": EFFECTS[taint["effect"]]} for taint in taints]
