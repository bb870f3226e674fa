"""What the tests of the azure-native stand-in share: a subscription in this process, recording clusters, calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import yaml

from karpstack.rehearsal.attachment.resource import Created, Properties
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.invokes import invokes
from karpstack.rehearsal.azure.provider import TYPES
from karpstack.rehearsal.azure.resource import AzureResource, Session
from karpstack.rehearsal.azure.subscription import Subscription
from karpstack.rehearsal.cluster.control_plane import Clusters
from karpstack.rehearsal.cluster.objects import Object
from tests.unit.rehearsal.azure_world import GROUP, OVERLAY, POOL, REGION, SCOPE, World
from tests.unit.rehearsal.recordings import resolved
from tests.unit.rehearsal.resource_world import RecordingPlane, ResourceWorld

_ROLES = f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions"
#: The cluster's pool, whose nodes take no pods of others.
SYSTEM = {**POOL, "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"]}


class FakeController:
    """Records what it is told to host."""

    def __init__(self) -> None:
        self.hosted = False
        self.environment: Mapping[str, str] = {}
        self.problem = ""
        self.starts = 0

    def host(self, namespace: str, variables: Mapping[str, str], token: str) -> str:
        self.starts += 1
        self.environment = variables
        self.hosted = not self.problem
        return self.problem

    def end_hosted(self) -> None:
        self.hosted = False


class FakeCluster(RecordingPlane):
    """A control plane that records what it is told, and answers what the test set."""

    endpoint = "https://127.0.0.1:6443"
    token = "administrator"

    def __init__(self, name: str, version: str, cloud: Any, kubeconfig: Path) -> None:
        super().__init__()
        self.name = name
        self.version = version
        self.cloud = cloud
        self.kubeconfig = kubeconfig
        self.objects = self
        self.controller = FakeController()

    def define(self, definitions: Iterable[Mapping[str, Any]]) -> None:
        self.apply(definitions)

    def list(self, path: str, *, labels: str) -> Iterable[Object]:
        key, equals, value = labels.split(",")[0].partition("=")
        return [
            {"metadata": {"name": name, "labels": node["labels"]}}
            for name, node in self.nodes.items()
            if (node["labels"].get(key) == value if equals else key in node["labels"])
        ]


class FakeClusters:
    """Clusters that are started in name only; one runs at a time."""

    def __init__(self, folder: Path) -> None:
        self.running: dict[str, FakeCluster] = {}
        self.started: list[dict[str, Any]] = []
        self.never_ready = False
        self._kubeconfig = folder / "kubeconfig"
        self._kubeconfig.write_text("kind: Config\nserver: https://127.0.0.1:6443\ncertificate-authority-data: eA==\n")

    def start(self, name: str, **options: Any) -> FakeCluster:
        assert set(options) == {"version", "service_cidr", "issuer", "cloud", "deployer_known"}
        if self.running:
            raise ValueError("a cluster is running, and a rehearsal has one at a time")
        self.started.append({"name": name, **options})
        self.running[name] = FakeCluster(name, options["version"], options["cloud"], self._kubeconfig)
        self.running[name].never_ready = self.never_ready
        return self.running[name]

    def get(self, name: str) -> FakeCluster | None:
        return self.running.get(name)

    def upgrade(self, name: str, version: str) -> None:
        self.running[name].version = version

    def stop(self, name: str) -> None:
        self.running.pop(name, None)


class Provider(ResourceWorld):
    """The resource types over one subscription that has the resource group `demo`."""

    proposed_name = "thing12345678"

    def __init__(self, folder: Path, location: str = REGION) -> None:
        self.world = World()
        self.azure: Subscription = self.world.azure
        self.clusters = FakeClusters(folder)
        definitions = folder / "definitions"
        definitions.mkdir(exist_ok=True)
        self.session = Session(self.azure, cast(Clusters, self.clusters), definitions, location)
        self._types = {kind.token.rsplit(":", 1)[1]: kind(self.session) for kind in TYPES}
        self.invokes = invokes(self.session, TYPES)
        #: What the tables of tests name as `<...>`.
        self.surroundings = Surroundings(self)

    def type(self, token: str) -> AzureResource:
        """By the last part of its token, the only one that differs."""
        return self._types[token]

    def all(self) -> Iterable[AzureResource]:
        return self._types.values()

    # Things that many others need.

    def network(self, **inputs: Any) -> Created:
        return self.create(
            "VirtualNetwork",
            **{
                "resourceGroupName": "demo",
                "virtualNetworkName": "net",
                "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
                **inputs,
            },
        )

    def identity(self, name: str = "controller") -> Created:
        return self.create("UserAssignedIdentity", resourceGroupName="demo", resourceName=name)

    def cluster_inputs(self, **inputs: Any) -> Properties:
        return {
            "resourceGroupName": "demo",
            "resourceName": "rehearsed",
            "dnsPrefix": "rehearsed",
            "kubernetesVersion": "1.36",
            "identity": {"type": "SystemAssigned"},
            "agentPoolProfiles": [SYSTEM],
            "networkProfile": OVERLAY,
            "oidcIssuerProfile": {"enabled": True},
            "securityProfile": {"workloadIdentity": {"enabled": True}},
            **inputs,
        }

    def cluster(self, **inputs: Any) -> Created:
        return self.create("ManagedCluster", **self.cluster_inputs(**inputs))

    @property
    def running(self) -> FakeCluster:
        return self.clusters.running["rehearsed"]


class Surroundings:
    """What tables name as `<...>`: made when it is first asked for."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._known: dict[str, Any] = {
            "group": "demo",
            "scope": GROUP,
            "role": f"{_ROLES}/{roles.NETWORK_CONTRIBUTOR.id}",
        }

    def __call__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._makers[name](self)
        return self._known[name]

    def _id(self, name: str) -> str:
        """That of a resource as its row makes it."""
        return self._provider.create(name, **LIVES[name].inputs(self._provider)).id

    _makers: ClassVar[dict[str, Callable[[Surroundings], Any]]] = {
        "network": lambda self: self._provider.network().outputs["name"],
        "address": lambda self: self._id("PublicIPAddress"),
        "identity": lambda self: self._provider.identity().outputs["name"],
        "principal": lambda self: self._provider.identity().outputs["principalId"],
        "cluster inputs": lambda self: self._provider.cluster_inputs(),
        "cluster": lambda self: self._provider.cluster().outputs["name"],
        "cluster path": lambda self: self._provider.cluster().id.lstrip("/"),
        "metrics": lambda self: self._id("AzureMonitorWorkspace"),
        "endpoint": lambda self: self._id("DataCollectionEndpoint"),
        "rule": lambda self: self._id("DataCollectionRule"),
    }


@dataclass(frozen=True)
class Life:
    """A row of azure_types.yaml, see there."""

    token: str
    given: Any
    changed: Properties
    id: str
    replaces: Properties
    updates: Properties

    def inputs(self, provider: Provider) -> Properties:
        found: Properties = resolved(self.given, provider.surroundings)
        in_group = "resourceGroupName" in provider.type(self.token).parameters
        return {"resourceGroupName": "demo", **found} if in_group else found


def _lives() -> Iterator[Life]:
    for token, row in yaml.safe_load(Path(__file__).with_name("azure_types.yaml").read_text()).items():
        id = row["id"].format(group=GROUP, subscription=SCOPE)
        yield Life(token, row["inputs"], row["change"], id, row.get("replaces", {}), row.get("updates", {}))


#: The life of each resource type, by the last part of its token.
LIVES = {life.token: life for life in _lives()}
