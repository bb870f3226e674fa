"""What a kubelet makes of a container: the environment and the arguments that its process gets.

Pure functions over a pod's manifest. Where the kubelet would refuse to start the container (a key that is not
there), so do they.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from karpstack.karpenter.quantities import exact
from karpstack.rehearsal.cluster.objects import Object

#: Looks up (kind, name) in the pod's namespace: `ConfigMap` or `Secret`; data as text, or None.
Lookup = Callable[[str, str], Mapping[str, str] | None]

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_FIELDS: dict[str, tuple[str, ...]] = {
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "status.hostIP": ("status", "hostIP"),
    "status.podIP": ("status", "podIP"),
}


class ContainerConfigError(Exception):
    """The kubelet would refuse to start the container (CreateContainerConfigError); the text says why."""


def environment(
    pod: Mapping[str, Any], container: Mapping[str, Any], allocatable: Mapping[str, str], lookup: Lookup
) -> dict[str, str]:
    """The variables of a container, with all references resolved.

    Args:
        allocatable: The node's allocatable resources, which count where the container has no limit.
        lookup: Finds config maps and secrets.

    Raises:
        ContainerConfigError: A reference leads nowhere.
    """
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if key in source:
                data = _data(lookup, kind, source[key]["name"], optional=source[key].get("optional", False))
                found.update({source.get("prefix", "") + name: value for name, value in data.items()})
    for variable in container.get("env", []):
        name = variable["name"]
        if "valueFrom" in variable:
            value = _from(variable["valueFrom"], name, pod, container, allocatable, lookup)
            if value is not None:
                found[name] = value
        else:
            found[name] = expand(variable.get("value", ""), found)
    return found


def arguments(container: Mapping[str, Any], variables: Mapping[str, str]) -> list[str]:
    """The arguments of a container with `$(NAME)` replaced."""
    return [expand(argument, variables) for argument in container.get("args", [])]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value; an unknown name stays as it is, `$$` is a dollar."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replace, text)


def resource(reference: Mapping[str, Any], container: Mapping[str, Any], allocatable: Mapping[str, str]) -> str:
    """The value of a resourceFieldRef, such as `limits.memory`, in units of its divisor, rounded up.

    Raises:
        ContainerConfigError: The kubelet knows no such resource.
    """
    kind, _, name = reference["resource"].partition(".")
    if kind not in ("limits", "requests") or not name:
        raise ContainerConfigError(f"unsupported container resource: {reference['resource']}")
    resources: Mapping[str, Any] = container.get("resources", {})
    value = resources.get(kind, {}).get(name)
    if value is None and kind == "requests":
        # Without a request the API server sets it to the limit; without either it is 0.
        value = resources.get("limits", {}).get(name, "0")
    if value is None:
        value = allocatable.get(name, "0")
    divisor = exact(reference.get("divisor") or "1") or Decimal(1)
    return str(math.ceil(exact(value) / divisor))


def _from(
    source: Object,
    name: str,
    pod: Mapping[str, Any],
    container: Mapping[str, Any],
    allocatable: Mapping[str, str],
    lookup: Lookup,
) -> str | None:
    if "fieldRef" in source:
        return _field(source["fieldRef"]["fieldPath"], pod)
    if "resourceFieldRef" in source:
        return resource(source["resourceFieldRef"], container, allocatable)
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            reference = source[key]
            optional = reference.get("optional", False)
            data = _data(lookup, kind, reference["name"], optional=optional)
            if reference["key"] not in data and not optional:
                raise ContainerConfigError(
                    f"couldn't find key {reference['key']} in {kind} {reference['name']}, which variable {name} needs"
                )
            return data.get(reference["key"])
    raise ContainerConfigError(
        f"the variable {name} comes from {', '.join(source)}, which the rehearsal does not resolve; use a value, "
        "fieldRef, resourceFieldRef, configMapKeyRef or secretKeyRef"
    )


def _field(path: str, pod: Mapping[str, Any]) -> str:
    match = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if match:
        return str(pod["metadata"].get(match[1], {}).get(match[2], ""))
    if path not in _FIELDS:
        raise ContainerConfigError(f"unsupported fieldPath: {path}")
    value: Any = pod
    for key in _FIELDS[path]:
        value = value.get(key, {})
    return str(value or "")


def _data(lookup: Lookup, kind: str, name: str, *, optional: bool) -> Mapping[str, str]:
    data = lookup(kind, name)
    if data is None and not optional:
        raise ContainerConfigError(f"{kind} {name} not found")
    return data or {}
