"""Whether `pulumi destroy` leaves anything, whatever hinders it and whatever dies: `make bench NAME=removal`.

Each run brings an EKS stack up, puts load on it and something that hinders its removal (removal.yaml), asks `preflight
destroy`, and destroys it with the engine's own command. In most of them something is killed midway, and the command is
given again. Then the account's own lists are read. A run is good if nothing is left, and whatever had to be taken away
by hand was named before the first deletion. Not a test: it prints a table, in three quarters of an hour or so.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil
import yaml

from tests.bench.kills import of
from tests.bench.shared import columns, show, temporary, up
from tests.rehearsal.conftest import RehearsedStack

RUNS: Final = 20
TRIES: Final = 4
#: How long a NodePool's node waits for what will not go, so that a run takes a minute and not an hour.
_GRACE: Final = {"karpstack:nodePools/default/template/spec/terminationGracePeriod": "20s"}
_FROZEN: Final = 8.0
_DESTROY: Final = ("pulumi", "destroy", "--yes", "--skip-preview", "--suppress-outputs", "--non-interactive")
_HINDRANCES: Final[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("removal.yaml").read_text())
Death = Callable[[RehearsedStack, psutil.Process], None]


def main() -> int:
    title = "pulumi destroy of EKS, hindered and killed"
    table = columns(title, "run|in the way|killed midway|look before|destroy|tries|left")
    good = 0
    for number in range(RUNS):
        name, hindrance = list(_HINDRANCES.items())[number % len(_HINDRANCES)]
        death = DEATHS[(number + number // len(_HINDRANCES)) % len(DEATHS)]
        after = random.Random(f"1-{number}").uniform(1.0, 10.0)  # noqa: S311
        with temporary() as folder, up(folder, **_GRACE) as stack:
            load(stack, hindrance.get("pods", {}))
            put(stack, hindrance)
            named, refused = looked(stack, hindrance.get("named", ""))
            if refused:
                take_away(stack, hindrance)
            seconds, tries, said = destroyed(stack, death, after)
            if not said and not refused:
                take_away(stack, hindrance)  # it outlives the stack, as was told
            remains = [*left(stack), *filter(None, [said])]
        good += named and not remains
        dies = f"{death.__doc__} after {after:.1f} s" if death else "nothing"
        look = ("names it, refuses" if refused else "names it or there is nothing") if named else "DOES NOT NAME IT"
        row = (str(number), name, dies, look, f"{seconds:.0f} s", str(tries), ", ".join(remains) or "nothing")
        table.add_row(*row)
        show(" | ".join(row))
    show(table, f"{good} of {RUNS} left nothing, and what had to be taken away by hand was named before.")
    return 0 if good == RUNS else 1


def looked(stack: RehearsedStack, words: str) -> tuple[bool, bool]:
    """Whether the look before destroy has the words, and whether it says that something is in the way."""
    result = stack.by_hand(
        sys.executable, "-m", "karpstack", "preflight", "destroy", stack.folder.stack, "--format", "json"
    )
    found = [finding["what"] for check in json.loads(result.stdout)["checks"] for finding in check["findings"]]
    return not words or any(words in what for what in found), result.returncode == 1


def destroyed(stack: RehearsedStack, death: Death | None, after: float) -> tuple[float, int, str]:
    """Destroy until it succeeds, which is the second time at most where nothing but the kill hinders it.

    Returns:
        Seconds; tries; what the last one said if it failed.
    """
    started = time.monotonic()
    said = ""
    for attempt in range(1, TRIES + 1):
        with dying(stack, death if attempt == 1 else None, after):
            result = stack.by_hand(*_DESTROY)
        if result.returncode == 0:
            return time.monotonic() - started, attempt, ""
        said = next((line.strip() for line in result.stdout.splitlines() if "error:" in line), result.stdout[-200:])
        stack.by_hand("pulumi", "cancel", "--yes", "--non-interactive")
    return time.monotonic() - started, TRIES, said


# -- what dies


def engine_dies(stack: RehearsedStack, command: psutil.Process) -> None:
    """kill -9 of pulumi"""
    command.kill()


def controller_dies(stack: RehearsedStack, command: psutil.Process) -> None:
    """kill -9 of Karpenter"""
    for process, line in of(stack.folder):
        if "/karpenter-aws" in line.split(" ")[0]:
            process.kill()


def cloud_hangs(stack: RehearsedStack, command: psutil.Process) -> None:
    """account and providers hang"""
    pid = stack.info.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(_FROZEN)
    finally:
        os.kill(pid, signal.SIGCONT)


DEATHS: Final[tuple[Death | None, ...]] = (None, engine_dies, controller_dies, cloud_hangs)


@contextlib.contextmanager
def dying(stack: RehearsedStack, death: Death | None, after: float) -> Iterator[None]:
    """Let something die some seconds after the block has begun to destroy."""
    over = threading.Event()

    def wait() -> None:
        found = None
        while found is None and not over.wait(0.05):
            found = next((process for process, line in of(stack.folder) if "pulumi destroy " in line), None)
        if found is not None and death is not None and not over.wait(after):
            death(stack, found)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# -- what is in the way


def kubectl(stack: RehearsedStack, *arguments: str, applied: Sequence[Mapping[str, Any]] = ()) -> str:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(applied)}) if applied else ""
    command = ["kubectl", "--namespace", "load", *arguments]
    return subprocess.run(command, input=text, text=True, check=True, env=stack.variables, capture_output=True).stdout


def load(stack: RehearsedStack, metadata: Mapping[str, Any]) -> None:
    """Pods on nodes of the stack's NodePool, until all of them run."""
    labels = {"app": "load"}
    container = {"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "900m"}}}
    pod = {"containers": [container], "nodeSelector": {"karpenter.sh/nodepool": "default"}}
    template = {"metadata": {"labels": labels, **metadata}, "spec": pod}
    spec = {"replicas": 6, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "load"}, "spec": spec}
    kubectl(stack, "create", "namespace", "load")
    kubectl(stack, "apply", "-f", "-", applied=[deployment])
    kubectl(stack, "rollout", "status", "deployment/load", "--timeout=120s")


def put(stack: RehearsedStack, hindrance: Mapping[str, Any]) -> None:
    objects = list(hindrance.get("objects", ()))
    if name := hindrance.get("node pool"):
        spec = json.loads(kubectl(stack, "get", "nodepool", "default", "--output", "json"))["spec"]
        spec["template"]["metadata"] = {"labels": {"by": "hand"}}
        objects.append({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec})
    if name := hindrance.get("volume"):  # as the EBS driver makes it
        made = stack.aws("ec2").create_volume(AvailabilityZone=f"{stack.info.region}a", Size=1)["VolumeId"]
        csi = {"driver": "ebs.csi.aws.com", "volumeHandle": made}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": csi}
        metadata = {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}}
        objects.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})
    if hindrance.get("instance"):  # with Karpenter's tags: its controller died before it could tell
        found = next(karpenters(stack))
        keep = [tag for tag in found["Tags"] if tag["Key"] != _CLAIM and not tag["Key"].startswith("aws:")]
        stack.aws("ec2").run_instances(
            **{key: found[key] for key in ("ImageId", "InstanceType", "SubnetId")},
            **{"MinCount": 1, "MaxCount": 1},
            SecurityGroupIds=[group["GroupId"] for group in found["SecurityGroups"]],
            TagSpecifications=[{"ResourceType": "instance", "Tags": keep}],
        )
    if objects:
        kubectl(stack, "apply", "-f", "-", applied=objects)
    if wait := hindrance.get("wait"):
        kubectl(stack, "wait", *wait, "--timeout=120s")


_CLAIM: Final = "karpenter.sh/nodeclaim"


def karpenters(stack: RehearsedStack) -> Iterator[dict[str, Any]]:
    """Instances with Karpenter's tags."""
    tagged = [{"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}]
    for reservation in stack.aws("ec2").describe_instances(Filters=tagged)["Reservations"]:
        yield from reservation["Instances"]


def take_away(stack: RehearsedStack, hindrance: Mapping[str, Any]) -> None:
    """Do as the finding says."""
    ec2 = stack.aws("ec2")
    if away := hindrance.get("away"):
        stack.by_hand("kubectl", "--namespace", "load", "delete", *away, "--timeout=180s")
    if hindrance.get("volume"):
        for each in ec2.describe_volumes(Filters=[{"Name": "status", "Values": ["available"]}])["Volumes"]:
            ec2.delete_volume(VolumeId=each["VolumeId"])
    if hindrance.get("instance"):
        for each in karpenters(stack):
            if _CLAIM not in {tag["Key"] for tag in each["Tags"]}:
                ec2.terminate_instances(InstanceIds=[each["InstanceId"]])


# -- what is left


def left(stack: RehearsedStack) -> list[str]:
    """What the account lists, and Pulumi's state; not the log group, which the stack keeps on purpose."""
    ec2, iam = stack.aws("ec2"), stack.aws("iam")
    networks = {vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]}
    own = [{"Name": "vpc-id", "Values": sorted(networks)}]
    found = [
        *networks,
        *(each["InstanceId"] for item in ec2.describe_instances()["Reservations"] for each in item["Instances"]
          if each["State"]["Name"] != "terminated"),
        *(each["VolumeId"] for each in ec2.describe_volumes()["Volumes"]),
        *(each["NetworkInterfaceId"] for each in ec2.describe_network_interfaces()["NetworkInterfaces"]),
        *(each["AllocationId"] for each in ec2.describe_addresses()["Addresses"]),
        *(each["NatGatewayId"] for each in ec2.describe_nat_gateways()["NatGateways"] if each["State"] != "deleted"),
        *(each["InternetGatewayId"] for each in ec2.describe_internet_gateways()["InternetGateways"]),
        *(each["LaunchTemplateName"] for each in ec2.describe_launch_templates()["LaunchTemplates"]),
        *(each["GroupId"] for each in ec2.describe_security_groups(Filters=own)["SecurityGroups"] if networks),
        *(each["SubnetId"] for each in ec2.describe_subnets(Filters=own)["Subnets"] if networks),
        *(each["LoadBalancerName"] for each in stack.aws("elb").describe_load_balancers()["LoadBalancerDescriptions"]),
        *stack.aws("eks").list_clusters()["clusters"],
        *(each["RoleName"] for each in iam.list_roles()["Roles"] if not each["Path"].startswith("/aws-service-role/")),
        *(each["PolicyName"] for each in iam.list_policies(Scope="Local")["Policies"]),
        *(each["InstanceProfileName"] for each in iam.list_instance_profiles()["InstanceProfiles"]),
        *(each["Arn"] for each in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]),
        *stack.aws("sqs").list_queues().get("QueueUrls", []),
        *(each["Name"] for each in stack.aws("events").list_rules()["Rules"]),
        *(each["AliasName"] for each in stack.aws("kms").list_aliases()["Aliases"]
          if not each["AliasName"].startswith("alias/aws/")),
    ]  # fmt: skip
    state = json.loads(stack.by_hand("pulumi", "stack", "export", "--non-interactive").stdout)
    resources = state["deployment"].get("resources", [])
    return sorted(found) + [
        f"in the state: {each['urn']}" for each in resources if each["type"] != "pulumi:pulumi:Stack"
    ]


if __name__ == "__main__":
    sys.exit(main())
