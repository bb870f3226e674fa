"""What of Karpenter's making there is in the cloud, and what of that belongs to nothing any more.

The cloud is asked, not Kubernetes: an instance without a NodeClaim is seen by nobody else, and costs money.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from karpstack.karpenter import clock

from ..judging.live import Live
from ..judging.replay import Replay
from ..recording.timeline import TEMPLATE, Writer
from .aws import ClientOf, client_of
from .rehearsal_control import RehearsalControl, RehearsalError

_LOOK_SECONDS = 1.0
_CLUSTER_TAG, _POOL_TAG, _CLAIM_TAG = "eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim"
_NODES = 100  # at the beginning and at the end, of which AWS is asked
_ALIVE = ("pending", "running", "stopping", "stopped")

INSTANCE = "instance"
_KINDS = {
    "instances": INSTANCE,
    "launchTemplates": TEMPLATE,
    "networkInterfaces": "network interface",
    "disks": "disk",
}

Moment = Literal["before", "story", "after"]


class NotCheckedError(RuntimeError):
    """Nobody could be asked; the text says why."""


@dataclass(frozen=True)
class CloudResource:
    """One thing of Karpenter's making: its kind, its id or name, and for what it was made, where that is known."""

    kind: str
    id: str
    nodeClaim: str = ""  # noqa: N815 - the name is that of the timeline


#: Takes the instances of the cluster's nodes.
Ask = Callable[[Sequence[str]], list[CloudResource]]


def cloud(outputs: Mapping[str, Any], rehearsal_url: str) -> tuple[str, Ask]:
    """Whom to ask: what it is called, and a function that asks.

    Raises:
        NotCheckedError: There is nobody to ask.
    """
    if rehearsal_url:
        return "the rehearsal", lambda _: from_rehearsal(RehearsalControl(rehearsal_url).resources())
    if outputs["cloud"] == "aws":
        own = cache(client_of)  # one login for all looks
        return "AWS", lambda nodes: from_aws(str(outputs["region"]), str(outputs["clusterName"]), nodes, own)
    raise NotCheckedError(
        "on a real subscription nobody is asked; look for virtual machines of the tag karpenter.sh_nodepool in the "
        "node resource group"
    )


def from_rehearsal(answer: Mapping[str, Sequence[Any]]) -> list[CloudResource]:
    """What a rehearsal's control endpoint says that there is."""
    return [
        CloudResource(_KINDS.get(kind, kind), str(entry["id"]), str(entry.get("nodeclaim") or ""))
        if isinstance(entry, Mapping)
        else CloudResource(_KINDS.get(kind, kind), str(entry))
        for kind, entries in answer.items()
        for entry in entries
    ]


def from_aws(
    region: str, cluster: str, nodes: Sequence[str] = (), client_of: ClientOf = client_of
) -> list[CloudResource]:
    """Instances that live and launch templates of a cluster's Karpenter, by their tags.

    Args:
        region: Of the cluster.
        cluster: Its name.
        nodes: Instances of nodes that it has or had, by which the account is known for its own.
        client_of: Gives the client.

    Raises:
        NotCheckedError: AWS refused, or knows none of the nodes.
    """
    from karpstack.text.aws_login import FAILURES

    tags = [{"Name": f"tag:{_CLUSTER_TAG}", "Values": [cluster]}]
    try:
        ec2 = client_of("ec2", region)
        known = [*nodes[:_NODES], *nodes[-_NODES:]]
        if known and not ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": known}])["Reservations"]:
            raise NotCheckedError(
                f"AWS knows none of the cluster's nodes in {region} ({', '.join(known[:3])}), so the login is of "
                "another account; set AWS_PROFILE to one of the stack's account"
            )
        instances = ec2.get_paginator("describe_instances").paginate(
            Filters=[
                *tags,
                {"Name": "tag-key", "Values": [_POOL_TAG]},
                {"Name": "instance-state-name", "Values": list(_ALIVE)},
            ]
        )
        templates = ec2.get_paginator("describe_launch_templates").paginate(Filters=tags)
        return [
            *(
                CloudResource(INSTANCE, instance["InstanceId"], _tag(instance, _CLAIM_TAG))
                for page in instances
                for reservation in page["Reservations"]
                for instance in reservation["Instances"]
            ),
            *(
                CloudResource(TEMPLATE, template["LaunchTemplateName"])
                for page in templates
                for template in page["LaunchTemplates"]
            ),
        ]
    except NotCheckedError:
        raise
    except FAILURES as error:
        raise NotCheckedError(
            f"AWS did not tell ({error!r:.500}); the login of the scale test needs ec2:DescribeInstances and "
            "ec2:DescribeLaunchTemplates"
        ) from error


def instances_of(replay: Replay) -> list[str]:
    """The instances of all nodes that were seen, also of those that are gone; nothing but on EC2."""
    found = (str(node.get("providerID", "")).rpartition("/")[2] for node in replay.nodes.values())
    return [one for one in found if one.startswith("i-")]


def orphans(resources: Sequence[CloudResource], node_claims: set[str]) -> list[CloudResource]:
    """Instances without a NodeClaim, and what else there is when no instance is left to need it.

    Launch templates are left out: Karpenter keeps them for a while on purpose.
    """
    instances = [resource for resource in resources if resource.kind == INSTANCE]
    homeless = [instance for instance in instances if instance.nodeClaim not in node_claims]
    if len(homeless) < len(instances):
        return homeless
    return [*homeless, *(resource for resource in resources if resource.kind not in (INSTANCE, TEMPLATE))]


@clock.waiting()
def check_resources(
    timeline: Path, outputs: Mapping[str, Any], rehearsal_url: str, moment: Moment, scenario: str, patience: float
) -> list[str]:
    """Ask the cloud, wait for deletions, write a RESOURCES line, and return the orphans.

    Args:
        timeline: The timeline of the run.
        outputs: The stack's outputs.
        rehearsal_url: Address of the rehearsal's control endpoint; empty for a real cloud.
        moment: Before all stories, at the end of one, or after all: then launch templates that the stories brought
            are waited for, too.
        scenario: Name of the scenario; empty before and after all.
        patience: Seconds to wait.
    """
    live = Live(timeline)
    deadline = clock.monotonic() + patience
    source, reason = "", ""
    resources: list[CloudResource] = []
    left: list[CloudResource] = []
    try:
        source, ask = cloud(outputs, rehearsal_url)
        while True:
            live.read()
            resources = ask(instances_of(live.replay))
            if moment == "before":
                break
            left = orphans(resources, {claim.name for claim in live.replay.claims.values() if claim.gone is None})
            if moment == "after":
                brought = brought_templates(live.replay)
                left += [resource for resource in resources if resource.kind == TEMPLATE and resource.id in brought]
            if not left or clock.monotonic() > deadline:
                break
            clock.sleep(_LOOK_SECONDS)
    except (NotCheckedError, RehearsalError) as error:
        source, reason = "", str(error)
    with Writer(timeline) as writer:
        writer.write(
            "RESOURCES",
            scenario=scenario,
            moment=moment,
            source=source,
            reason=reason,
            resources=[asdict(resource) for resource in resources],
            orphans=[asdict(orphan) for orphan in left],
        )
    return [f"{orphan.kind} {orphan.id}" for orphan in left]


def brought_templates(replay: Replay) -> set[str]:
    """Names of the launch templates that came with the stories."""
    looks = [mark for mark in replay.marks if mark["type"] == "RESOURCES"]
    before, during = (
        {
            resource["id"]
            for look in looks
            if look["moment"] == moment
            for resource in look["resources"]
            if resource["kind"] == TEMPLATE
        }
        for moment in ("before", "story")
    )
    return during - before


def _tag(resource: Mapping[str, Any], key: str) -> str:
    return next((str(tag["Value"]) for tag in resource.get("Tags", ()) if tag["Key"] == key), "")
