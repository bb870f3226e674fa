"""Karpenter's controller by its Deployment: its release, and those of its settings that decide what it does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from .api_fields import differing_keys, mapping, mappings
from .left_out import Ledger
from .model import Karpenter

KIND: Final = "Deployment"
_NAME: Final = "karpenter"
_OF_CHART: Final = "app.kubernetes.io/name"
_GATES: Final = "FEATURE_GATES"
#: Environment variable -> key of the chart's `settings`, of those that a rehearsed controller is given.
SETTINGS: Final[Mapping[str, str]] = {
    "AMI_REFRESH_INTERVAL": "amiRefreshInterval",
    "BATCH_IDLE_DURATION": "batchIdleDuration",
    "BATCH_MAX_DURATION": "batchMaxDuration",
    "IGNORE_DRA_REQUESTS": "ignoreDRARequests",
    "MIN_VALUES_POLICY": "minValuesPolicy",
    "PREFERENCE_POLICY": "preferencePolicy",
    "RESERVED_ENIS": "reservedENIs",
    "VM_MEMORY_OVERHEAD_PERCENT": "vmMemoryOverheadPercent",
}
#: Variables that decide nothing which a rehearsal shows.
_QUIET: Final = re.compile(
    "LOG_.*|METRICS_PORT|HEALTH_PROBE_PORT|CPU_REQUESTS|MEMORY_LIMIT|GO(MEMLIMIT|MAXPROCS)|KUBE_CLIENT_.*|"
    "ENABLE_PROFILING|LEADER_ELECTION_.*|DISABLE_(LEADER_ELECTION|CONTROLLER_WARMUP|CLUSTER_STATE_OBSERVABILITY)"
)
#: The same of the container and its pod. Their image, settings and command are compared by themselves.
_QUIET_OF_CONTAINERS: Final = frozenset({"image", "imagePullPolicy", "env", "envFrom", "args", "resources", "ports"})
_QUIET_OF_PODS: Final = frozenset(
    {"containers", "priorityClassName", "terminationGracePeriodSeconds", "topologySpreadConstraints"}
)
_REFERENCE: Final = "$("
_TAG: Final = re.compile(r":v?([0-9]+\.[0-9]+\.[0-9]+[-.\w]*)(@|$)")
_IMAGE: Final = re.compile(r"\bkarpenter[-/]controller(:|@|\Z)")
_IMAGE_NAME: Final = re.compile(r"(:[^:/@]*)?(@.*)?\Z", re.DOTALL)  # what follows it
_GATE: Final = re.compile(r"\s*([A-Z][A-Za-z]*)=(1|t|T|true|TRUE|True|0|f|F|false|FALSE|False)\s*")  # as Go reads them
_VALUE: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}", re.ASCII)


def is_controller(item: Mapping[str, Any]) -> bool:
    """Whether an object is the Deployment of Karpenter's controller."""
    if item.get("kind") != KIND or not str(item.get("apiVersion")).startswith("apps/"):
        return False
    container = _container(item)
    is_image = bool(_IMAGE.search(str(container.get("image"))))
    return bool(container) and (is_image or is_named_karpenter(item))


def is_named_karpenter(item: Mapping[str, Any]) -> bool:
    """Whether an object has Karpenter's name, or that of its chart."""
    metadata = mapping(item.get("metadata"))
    return _NAME in (mapping(metadata.get("labels")).get(_OF_CHART), metadata.get("name"))


def karpenter_of(item: Mapping[str, Any]) -> Karpenter | None:
    """Karpenter as the Deployment of its controller has it; None for another Deployment."""
    if not is_controller(item):
        return None
    given = _given(item)
    labels = item["metadata"].get("labels") or {}
    tag = _TAG.search(str(_container(item).get("image")))
    version = tag[1] if tag else str(labels.get("app.kubernetes.io/version") or "").removeprefix("v")
    gates = [found for one in _gates(given) if (found := _GATE.fullmatch(one))]
    return Karpenter(
        version=version or None,
        feature_gates={one[1][0].lower() + one[1][1:]: one[2][0] in "1tT" for one in gates},
        settings={key: str(given[name]) for name, key in SETTINGS.items() if _is_known(given.get(name))},
    )


def unseen(item: Mapping[str, Any]) -> dict[str, Any]:
    """Settings in the Deployment of the controller that a rehearsal does not have, by their environment variables."""
    given = _given(item) | {key: value for key, value in _container(item).items() if key == "envFrom" and value}
    found = {name: value for name, value in given.items() if not (_QUIET.fullmatch(name) or _is_read(name, given))}
    # Kubernetes puts another variable's value where $(NAME) is.
    return {name: [value, given] if _REFERENCE in str(value) else value for name, value in found.items()}


def _is_read(name: str, given: Mapping[str, Any]) -> bool:
    """Whether a rehearsed controller is given a setting as it is."""
    if name == _GATES:
        return isinstance(given[name], str) and all(_GATE.fullmatch(one) for one in _gates(given))
    return name in SETTINGS and _is_known(given[name])


def _gates(given: Mapping[str, Any]) -> list[str]:
    return [one for one in str(given.get(_GATES) or "").split(",") if one.strip()]


def sources(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of each ConfigMap and Secret from which the controller gets settings."""
    container = _container(item)
    for one in mappings(container.get("env")):
        of = mapping(one.get("valueFrom"))
        yield "ConfigMap", str(mapping(of.get("configMapKeyRef")).get("name"))
        yield "Secret", str(mapping(of.get("secretKeyRef")).get("name"))
    for one in mappings(container.get("envFrom")):
        yield "ConfigMap", str(mapping(one.get("configMapRef")).get("name"))
        yield "Secret", str(mapping(one.get("secretRef")).get("name"))


def replaced(item: Mapping[str, Any], earlier: Mapping[str, Any]) -> list[str]:
    """What changes in the Deployment of the controller by which there is another program, or none."""
    now, old = _image(item), _image(earlier)
    changed = []
    # Of another release, the tag says which one it is.
    releases = {tag[1] for image in (now, old) if (tag := _TAG.search(image))}
    if now != old and (len(releases) < 2 or _IMAGE_NAME.sub("", now) != _IMAGE_NAME.sub("", old)):
        changed.append("image")
    for part, quiet in ((_container, _QUIET_OF_CONTAINERS), (_pod, _QUIET_OF_PODS), (_rest, frozenset[str]())):
        changed += [key for key in differing_keys(part(item), part(earlier)) if key not in quiet]
    return changed


def _image(item: Mapping[str, Any]) -> str:
    return str(_container(item).get("image"))


def only_one(found: Iterable[Karpenter | None], ledger: Ledger) -> Karpenter | None:
    """Return the controller among Deployments; None where several could be it, for anybody can give one that name."""
    many = [one for one in found if one]
    if len(many) > 1:
        ledger.add(
            "Karpenter's settings", "several Deployments have the name or the label of its controller", len(many)
        )
    return many[0] if len(many) == 1 else None


def _is_known(value: object) -> bool:
    return isinstance(value, str) and _VALUE.fullmatch(value) is not None


def _pod(item: Mapping[str, Any]) -> Mapping[str, Any]:
    pod: Any = item
    for key in ("spec", "template", "spec"):
        pod = mapping(pod.get(key))
    return mapping(pod)


def _container(item: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = mappings(_pod(item).get("containers"))
    return next((one for one in containers if one.get("name") == "controller"), next(iter(containers), {}))


def _others(item: Mapping[str, Any]) -> list[Any]:
    """The other containers of the controller's pod."""
    own = _container(item)
    return [one for one in mappings(_pod(item).get("containers")) if one is not own]


def _words(item: Mapping[str, Any]) -> list[str]:
    """The arguments of the controller that are no flags; after a flag that is yes or no, such a word ends all flags."""
    return [word for word in map(str, _container(item).get("args") or ()) if not word.startswith("-")]


def _rest(item: Mapping[str, Any]) -> dict[str, Any]:
    """What else decides which program runs where, if any; others give pods something because of their labels."""
    spec = mapping(item.get("spec"))
    of_pods = mapping(mapping(spec.get("template")).get("metadata"))
    return {
        "args": _words(item),
        "containers": _others(item),
        "metadata.namespace": item["metadata"].get("namespace"),
        "paused": bool(spec.get("paused")),
        "replicas": spec.get("replicas") == 0,
        **{f"template.metadata.{key}": of_pods.get(key) or {} for key in ("labels", "annotations")},
    }


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    """The controller's settings by environment variables; its arguments go before."""
    container = _container(item)
    variables = {str(one.get("name")): one.get("value", one.get("valueFrom")) for one in mappings(container.get("env"))}
    words = [word for key in ("command", "args") if isinstance(given := container.get(key), list) for word in given]
    return variables | dict(_flags(words))


def _flags(words: list[Any]) -> Iterator[tuple[str, str]]:
    """Yield the flags of a command line by the environment variables that stand for them."""
    for place, word in enumerate(map(str, words)):
        if word.startswith("-"):
            name, has_value, value = word.lstrip("-").partition("=")
            following = [str(one) for one in words[place + 1 : place + 2] if not str(one).startswith("-")]
            yield name.upper().replace("-", "_"), value if has_value else next(iter(following), "true")
