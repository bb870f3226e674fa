"""Whether `pulumi destroy` leaves anything, whatever is in its way and whatever dies meanwhile: `make bench-removal`.

Each run brings an EKS stack up, puts load on it and something that hinders its removal, asks `preflight destroy`, and
destroys it with the engine's own command. In most of them something is killed midway, and the command is given again.
Then the account's own lists are read. A run is good if nothing is left, and whatever had to be taken away by hand was
named before the first deletion. Not a test: it prints a table, in three quarters of an hour or so.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from kubernetes import client
from rich.console import Console
from rich.table import Table

from tests.bench.kills import of
from tests.rehearsal.conftest import RehearsedStack, new_stack

RUNS: Final = 20
#: How long a NodePool's node waits for what will not go, so that a run takes a minute and not an hour.
GRACE: Final = "20s"
TRIES: Final = 4
_FROZEN: Final = 8.0
_NAMESPACE: Final = "load"
_LOAD: Final = {"app": "load"}
_DESTROY: Final = ("pulumi", "destroy", "--yes", "--skip-preview", "--suppress-outputs", "--non-interactive")


@dataclass(frozen=True)
class Hindrance:
    """What is in the way of a removal.

    Attributes:
        title: For the table.
        make: Puts it there.
        named: Words of the finding that the look before must have; empty where there is none.
        take_away: What whoever reads the finding does; None where nothing needs to be done.
    """

    title: str
    make: Callable[[RehearsedStack], None]
    named: str = ""
    take_away: Callable[[RehearsedStack], None] | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a run; `seconds` of all commands that destroy."""

    named: bool
    refused: bool
    seconds: float
    tries: int
    left: list[str]
    said: str

    @property
    def is_good(self) -> bool:
        return self.named and not self.left and not self.said


def main() -> int:
    """Run all of it and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.removal", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how many ({RUNS})")
    parser.add_argument("--first", type=int, default=0, help="number of the first run: it decides what is done (0)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments at which something is killed (1)")
    options = parser.parse_args()
    console = Console(width=160)
    table = Table(title="pulumi destroy of EKS, hindered and killed", title_justify="left")
    for column in ("run", "in the way", "killed midway", "look before", "destroy", "tries", "left"):
        table.add_column(column, overflow="fold")
    good = 0
    for number in range(options.first, options.first + options.runs):
        hindrance = HINDRANCES[number % len(HINDRANCES)]
        death = DEATHS[(number + number // len(HINDRANCES)) % len(DEATHS)]
        after = random.Random(f"{options.seed}-{number}").uniform(1.0, 10.0)  # noqa: S311
        outcome = run(hindrance, death, after)
        good += outcome.is_good
        look = "names it, refuses" if outcome.refused else "names it" if hindrance.named else "nothing to name"
        row = (
            *(str(number), hindrance.title, f"{death.__doc__} after {after:.1f} s" if death else "nothing"),
            *(look if outcome.named else "DOES NOT NAME IT", f"{outcome.seconds:.0f} s", str(outcome.tries)),
            ", ".join([*outcome.left, *filter(None, [outcome.said])]) or "nothing",
        )
        table.add_row(*row)
        console.print(*row, sep=" | ", markup=False)
    console.print(table)
    console.print(f"{good} of {options.runs} left nothing, and what had to be taken away by hand was named before.")
    return 0 if good == options.runs else 1


def run(hindrance: Hindrance, death: Death | None, after: float) -> Outcome:
    """One removal."""
    with tempfile.TemporaryDirectory() as temporary:
        stack = new_stack(Path(temporary))
        stack.configure(**{"karpstack:nodePools/default/template/spec/terminationGracePeriod": GRACE})
        try:
            stack.succeed("up")
            load(stack)
            hindrance.make(stack)
            named, refused = looked(stack, hindrance.named)
            if refused and hindrance.take_away:
                hindrance.take_away(stack)
            seconds, tries, said = destroyed(stack, death, after)
            if not said and not refused and hindrance.take_away:
                hindrance.take_away(stack)  # it outlives the stack, as was told
            return Outcome(named, refused, seconds, tries, left(stack), said)
        finally:
            stack.command("down", "--force")


def looked(stack: RehearsedStack, words: str) -> tuple[bool, bool]:
    """Whether the look before destroy has the words, and whether it says that something is in the way."""
    result = stack.by_hand(sys.executable, "-m", "preflight", "destroy", stack.folder.stack, "--json")
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

Death = Callable[[RehearsedStack, psutil.Process], None]


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


def load(stack: RehearsedStack, **pod: Any) -> None:
    """Pods on nodes of the stack's NodePool, until all of them run."""
    metadata = {"labels": _LOAD, **pod}
    container = {"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "900m"}}}
    template = {
        "metadata": metadata,
        "spec": {"containers": [container], "nodeSelector": {"karpenter.sh/nodepool": "default"}},
    }
    api: Any = client.AppsV1Api(stack.api())
    core: Any = client.CoreV1Api(stack.api())
    with contextlib.suppress(client.ApiException):
        core.create_namespace({"metadata": {"name": _NAMESPACE}})
    body = {
        "metadata": {"name": "load"},
        "spec": {"replicas": 6, "selector": {"matchLabels": _LOAD}, "template": template},
    }
    with contextlib.suppress(client.ApiException):
        api.delete_namespaced_deployment("load", _NAMESPACE)
    api.create_namespaced_deployment(_NAMESPACE, body)
    done = stack.by_hand("kubectl", "rollout", "status", "deployment/load", "-n", _NAMESPACE, "--timeout=120s")
    if done.returncode:
        raise RuntimeError(f"the load does not run: {done.stdout}")


def nothing(stack: RehearsedStack) -> None:
    """Leave it at the load."""


def undisturbed(stack: RehearsedStack) -> None:
    """Pods that no controller may evict."""
    load(stack, annotations={"karpenter.sh/do-not-disrupt": "true"})


def finalizers(stack: RehearsedStack) -> None:
    """Pods that do not go when they are deleted."""
    load(stack, finalizers=["example.com/never"])


def budget(stack: RehearsedStack) -> None:
    """A PodDisruptionBudget that lets none go."""
    api: Any = client.PolicyV1Api(stack.api())
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": _LOAD}}
    api.create_namespaced_pod_disruption_budget(_NAMESPACE, {"metadata": {"name": "none"}, "spec": spec})
    stack.by_hand(
        "kubectl", "wait", "pdb/none", "-n", _NAMESPACE, "--for=jsonpath={.status.expectedPods}=6", "--timeout=30s"
    )


def service(stack: RehearsedStack) -> None:
    """A Service of type LoadBalancer, until it has its address."""
    api: Any = client.CoreV1Api(stack.api())
    spec = {"type": "LoadBalancer", "selector": _LOAD, "ports": [{"port": 80}]}
    api.create_namespaced_service(_NAMESPACE, {"metadata": {"name": "web"}, "spec": spec})
    address = "--for=jsonpath={.status.loadBalancer.ingress[0].hostname}"
    stack.by_hand("kubectl", "wait", "service/web", "-n", _NAMESPACE, address, "--timeout=30s")


def without_service(stack: RehearsedStack) -> None:
    """As the finding says."""
    stack.by_hand("kubectl", "delete", "service", "web", "-n", _NAMESPACE, "--timeout=60s")


def volume(stack: RehearsedStack) -> None:
    """A volume as the EBS driver makes it."""
    made = stack.aws("ec2").create_volume(AvailabilityZone=f"{stack.info.region}a", Size=1)["VolumeId"]
    api: Any = client.CoreV1Api(stack.api())
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": made},
    }
    metadata = {"name": "data", "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}}
    api.create_persistent_volume({"metadata": metadata, "spec": spec})


def without_volume(stack: RehearsedStack) -> None:
    """As its driver would, or whoever reads that it outlives the cluster."""
    ec2 = stack.aws("ec2")
    for each in ec2.describe_volumes(Filters=[{"Name": "status", "Values": ["available"]}])["Volumes"]:
        ec2.delete_volume(VolumeId=each["VolumeId"])


def node_pool(stack: RehearsedStack) -> None:
    """A NodePool by hand, with a node."""
    api: Any = client.CustomObjectsApi(stack.api())
    spec = api.get_cluster_custom_object("karpenter.sh", "v1", "nodepools", "default")["spec"]
    spec["template"]["metadata"] = {"labels": {"by": "hand"}}
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "by-hand"}, "spec": spec}
    api.create_cluster_custom_object("karpenter.sh", "v1", "nodepools", pool)
    container = {"name": "pause", "image": "pause"}
    pod = {"metadata": {"name": "by-hand"}, "spec": {"containers": [container], "nodeSelector": {"by": "hand"}}}
    core: Any = client.CoreV1Api(stack.api())
    core.create_namespaced_pod(_NAMESPACE, pod)
    stack.by_hand("kubectl", "wait", "pod/by-hand", "-n", _NAMESPACE, "--for=condition=Ready", "--timeout=120s")


def without_node_pool(stack: RehearsedStack) -> None:
    """As the finding says."""
    stack.by_hand("kubectl", "delete", "nodepool", "by-hand", "--cascade=foreground", "--timeout=180s")


def instance(stack: RehearsedStack) -> None:
    """An instance with Karpenter's tags that no NodeClaim knows: its controller died before it could tell."""
    ec2 = stack.aws("ec2")
    known = ec2.describe_instances(Filters=[{"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}])
    found = known["Reservations"][0]["Instances"][0]
    tags = [
        tag for tag in found["Tags"] if tag["Key"] != "karpenter.sh/nodeclaim" and not tag["Key"].startswith("aws:")
    ]
    ec2.run_instances(
        ImageId=found["ImageId"],
        InstanceType=found["InstanceType"],
        SubnetId=found["SubnetId"],
        SecurityGroupIds=[group["GroupId"] for group in found["SecurityGroups"]],
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )


def without_instance(stack: RehearsedStack) -> None:
    """As the finding says."""
    ec2 = stack.aws("ec2")
    for reservation in ec2.describe_instances(Filters=[{"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}])[
        "Reservations"
    ]:
        for each in reservation["Instances"]:
            if "karpenter.sh/nodeclaim" not in {tag["Key"] for tag in each["Tags"]}:
                ec2.terminate_instances(InstanceIds=[each["InstanceId"]])


HINDRANCES: Final = (
    Hindrance("running pods", nothing),
    Hindrance("pods with do-not-disrupt", undisturbed, "karpenter.sh/do-not-disrupt"),
    Hindrance("a Service of type LoadBalancer", service, "is of type LoadBalancer", without_service),
    Hindrance("a PodDisruptionBudget that lets none go", budget, "lets none of its"),
    Hindrance("a NodePool made by hand", node_pool, "the NodePool by-hand is not the stack's", without_node_pool),
    Hindrance("a volume of a driver", volume, "the PersistentVolume data was made by", without_volume),
    Hindrance("pods with a finalizer", finalizers),
    Hindrance("an instance without a NodeClaim", instance, "no NodeClaim", without_instance),
)


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
