"""The stand-ins of a cluster, led through steps: what the API server tells them, and what they do (players.yaml)."""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.cluster.cilium import Cilium
from karpstack.rehearsal.cluster.cloud import LoadBalancerError, Machine
from karpstack.rehearsal.cluster.feed import Player
from karpstack.rehearsal.cluster.registrar import Registrar
from karpstack.rehearsal.cluster.service_controller import ServiceController
from karpstack.rehearsal.cluster.startup_taints import StartupTaints
from karpstack.rehearsal.cluster.volumes import Volumes
from karpstack.rehearsal.cluster.vpc_cni import VpcCni
from karpstack.rehearsal.timing import Timing
from tests.unit.rehearsal.cluster_world import UnaskedCloud, World

TABLE = yaml.safe_load(Path(__file__).with_name("players.yaml").read_text().replace("volume/", "volume.kubernetes.io/"))
COLLECTIONS, OBJECTS = TABLE.pop("collections"), TABLE.pop("objects")
del TABLE["taints"]
ID = "aws:///us-east-1a/i-1"
PRESENT = {
    "/api/v1/nodes/n": {
        **OBJECTS["node"],
        "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "us-east-1b"}},
    },
    "/apis/storage.k8s.io/v1/storageclasses/gp3": {"reclaimPolicy": "Delete"},
    "/api/v1/namespaces/kube-system/serviceaccounts/aws-node": {
        "metadata": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/cni"}}
    },
    "/api/v1/namespaces/kube-system/configmaps/cilium-config": {
        "data": {f"{key}-cilium-node-taints": "true" for key in ("set", "remove")}
        | {"set-cilium-is-up-condition": "true"}
    },
}
DRIVER = "/api/v1/namespaces/kube-system/pods?app=ebs-csi-controller"
WHILE = 0.25


class Cloud(UnaskedCloud):
    """What it is asked for; it refuses while it has a refusal."""

    def __init__(self) -> None:
        self.refusal = ""
        self.machines: dict[str, Machine] = {}
        self.asked: queue.Queue[str] = queue.Queue()

    def machine(self, provider_id: str) -> Machine | None:
        return self.machines.get(provider_id)

    def has_machine(self, provider_id: str) -> bool:
        return provider_id in self.machines

    def network_refusal(self, provider_id: str, namespace: str, account: str, annotations: Mapping[str, str]) -> str:
        self.asked.put(f"{provider_id} {namespace}/{account} {' '.join(annotations.values())}")
        return self.refusal

    def ensure(self, service: Mapping[str, Any]) -> str:
        self._balance("ensure", service)
        return "web.elb"

    def remove(self, service: Mapping[str, Any]) -> None:
        self._balance("remove", service)

    def _balance(self, verb: str, service: Mapping[str, Any]) -> None:
        self.asked.put(f"{verb} {service['metadata']['name']}")
        if self.refusal:
            raise LoadBalancerError(self.refusal)


class Soon(Registrar):
    between_tries, between_looks, until_swept = 0.1, 0.05, (0.05, 0.4)


class SoonConnected(VpcCni):
    between_tries = 0.05


class SoonBalanced(ServiceController):
    back_off = (0.1, 300.0)


TIMING = Timing(node_boot=0.05, system_node_boot=0, agent_start=0.05)
PLAYERS: dict[str, Callable[[World, Cloud], Player]] = {
    "registrar": lambda world, cloud: Soon(world.objects(), cloud, TIMING),
    "startup taints": lambda world, _: StartupTaints(world.objects()),
    "vpc-cni": lambda world, cloud: SoonConnected(world.objects(), cloud, TIMING),
    "cilium": lambda world, _: Cilium(world.objects(), "https://127.0.0.1:6443", TIMING),
    "volumes": lambda world, _: Volumes(world.objects()),
    "service-controller": lambda world, cloud: SoonBalanced(world.objects(), cloud),
}


class Stage:
    """A stand-in that plays, and the steps that it is led through."""

    def __init__(self, player: str) -> None:
        self.world, self.cloud = World(), Cloud()
        self.world.present |= copy.deepcopy(PRESENT)
        self.world.listed[DRIVER] = [{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}]
        self.player = PLAYERS[player](self.world, self.cloud)

    def tell(self, collection: str, kind: str, name: str = "", changes: Mapping[str, Any] | None = None) -> None:
        self.world.happen(COLLECTIONS[collection], kind, changed(OBJECTS[name], changes or {}) if name else None)

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            if name == "machine":
                refusal = "" if value == "joins" else value
                self.cloud.machines[ID] = Machine(ID, "ip-1", {}, "v1.36.3", refusal, capacity={"cpu": "2"})
            elif name in ("refusal", "away"):
                setattr(self.cloud if name == "refusal" else self.world, name, value)
            elif value is None:
                del self.world.present[name]
            elif isinstance(value, list):
                self.world.listed[name] = value
            else:
                ((template, changes),) = value.items() if len(value) == 1 else (("", value),)
                self.world.present[name] = changed(OBJECTS[template], changes) if template else value

    def patched(self, path: str, values: Mapping[str, Any]) -> None:
        sent, body = self.world.patched.get(timeout=5)
        assert sent == path
        same(body, values)

    def created(self, path: str, values: Mapping[str, Any]) -> None:
        made = self.world.created.get(timeout=5)
        assert made["path"] == path
        same(made, values)

    def deleted(self, path: str) -> None:
        assert self.world.deleted.get(timeout=5) == path

    def asked(self, what: str) -> None:
        assert self.cloud.asked.get(timeout=5) == what

    def nothing(self, kind: str) -> None:
        with pytest.raises(queue.Empty):
            self._queue(kind).get(timeout=WHILE)

    def over(self, kind: str) -> None:
        assert self._queue(kind).empty()

    def _queue(self, kind: str) -> queue.Queue[Any]:
        found: queue.Queue[Any] = self.cloud.asked if kind == "asked" else getattr(self.world, kind)
        return found


def changed(item: Any, changes: Mapping[str, Any]) -> Any:
    item = copy.deepcopy(item)
    for path, value in changes.items():
        *parents, last = keys(path)
        place = item
        for key in parents:
            place = place[key]
        place.pop(last) if value is None else place.__setitem__(last, value)
    return item


def keys(path: str) -> list[Any]:
    """`metadata.annotations.a.b/c` has three keys: what is behind a slash's name is one."""
    if "annotations." in path:
        head, _, tail = path.partition("annotations.")
        return [*keys(f"{head}annotations"), tail]
    return [int(key) if key.isdigit() else key for key in path.split(".")]


def same(item: Any, values: Mapping[str, Any]) -> None:
    for path, expected in values.items():
        found = item
        for key in keys(path):
            found = found[key]
        if isinstance(expected, str) and expected.startswith("~"):
            assert expected[1:] in found
        else:
            assert found == expected


CASES = [
    pytest.param(player, steps, id=f"{player}: {name}")
    for player, cases in TABLE.items()
    for name, steps in cases.items()
]


@pytest.mark.parametrize(("player", "steps"), CASES)
def test_a_stand_in_does_what_its_part_does(player: str, steps: list[Mapping[str, Any]]) -> None:
    stage = Stage(player)
    stage.player.start()
    try:
        for step in steps:
            ((verb, what),) = step.items()
            if isinstance(what, Mapping):
                stage.set(**what)
            else:
                getattr(stage, verb)(*(what if isinstance(what, list) else [what]))
    finally:
        stage.player.stop()


def test_a_group_whose_machines_may_not_join_fails_at_once() -> None:
    registrar = Soon(World().objects(), Cloud(), TIMING)
    assert registrar.join([Machine("p", "ip-2", capacity={"cpu": "1"}, refusal="no")], [], {}, 30) == ["ip-2"]


def test_a_group_waits_for_ready_nodes() -> None:
    world, machine = World(), Machine(ID, "ip-1", capacity={"cpu": "2"})
    registrar = Soon(world.objects(), Cloud(), TIMING)
    left: queue.Queue[list[str]] = queue.Queue()
    threading.Thread(target=lambda: left.put(registrar.join([machine], [], {}, 30)), daemon=True).start()
    node = world.created.get(timeout=5)
    world.happen("/api/v1/nodes", "ADDED", node)
    with pytest.raises(queue.Empty):
        left.get(timeout=0.2)
    ready = {**node, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    world.happen("/api/v1/nodes", "MODIFIED", ready)
    assert left.get(timeout=5) == []
    assert registrar.join([machine], [], {}, 0.1) == ["ip-1"]


@pytest.mark.parametrize(("longest", "pauses"), [(300.0, [0.01, 0.02, 0.04, 0.08]), (0.02, [0.01, 0.02, 0.02, 0.02])])
def test_a_load_balancer_is_tried_again_with_growing_pauses_up_to_a_limit(longest: float, pauses: list[float]) -> None:
    stage = Stage("service-controller")
    stage.player.back_off = (0.01, longest)  # type: ignore[attr-defined]
    stage.set(refusal="no subnets")
    stage.world.present["/api/v1/namespaces/shop/services/web"] = OBJECTS["service"]
    feed, paused = stage.player._feed, list[float]()
    later = feed.after

    def after(seconds: float, *event: Any) -> None:
        paused.append(seconds)
        later(seconds, *event)

    feed.after = after  # type: ignore[assignment]
    stage.player.start()
    stage.tell("services", "ADDED", "service")
    for _ in range(5):
        stage.asked("ensure web")
    stage.player.stop()
    assert paused[:4] == pauses
