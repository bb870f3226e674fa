"""Looking at a whole stack: resources by type, and outputs that may not be there yet. Judges nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pulumi_policy import PolicyResource
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UnknownValueError

from .rule import Judgement, NotKnownError, Properties, section
from .tokens import HELM_RELEASE, QUEUE

Resources = list[PolicyResource]


def of(resources: Resources, *tokens: str) -> Iterator[PolicyResource]:
    """The resources of some types."""
    return (resource for resource in resources if resource.resource_type in tokens)


def output(resource: PolicyResource, name: str) -> Any:
    """An output that such a resource always has.

    Where its provider can't be asked at preview, because the kubeconfig is not known yet, the engine shows
    the resource without any outputs. Then it is as unknown as if it said so.
    """
    if name not in set(resource.props):
        raise UnknownValueError(UNKNOWN_OBJECT_VALUE, [resource.name, name])
    return resource.props[name]


def sources(resource: PolicyResource, name: str) -> list[PolicyResource]:
    """The resources from which an input comes; the engine tells them, though the value may not be known yet."""
    return resource.property_dependencies.get(name, [])


def metadata(resource: PolicyResource) -> Properties:
    """The metadata of a Kubernetes object; empty where it is null."""
    found: Properties = output(resource, "metadata") or {}
    return found


def object_name(resource: PolicyResource) -> str:
    """The name of a Kubernetes object, which is not the resource's."""
    return str(metadata(resource).get("name") or resource.name)


def releases(resources: Resources, chart: str, judgement: Judgement) -> Iterator[PolicyResource]:
    """The Helm releases of a chart; one whose chart is unknown leaves the judgement incomplete."""
    for resource in of(resources, HELM_RELEASE):
        with judgement.part():
            if is_chart(output(resource, "chart") or "", chart):
                yield resource


def is_chart(reference: str, name: str) -> bool:
    """Whether a reference (a name, an OCI reference, a folder, an archive) is to this chart."""
    ending = r"((-v?\d[^/]*)?\.tgz(\?.*)?|[:@][^/]*)?/*"
    return re.fullmatch(rf"(.*/)?{re.escape(name)}{ending}", reference) is not None


def values(release: PolicyResource) -> Properties:
    """The values of a release; empty where none are set."""
    output(release, "chart")
    return chart_values(release.props, release.name)


def chart_values(release: Properties, *where: str) -> Properties:
    """The values in the properties of a release, with those of its files; `where` leads to these properties.

    Pulumi reads the files only where nothing else of the release is unknown.

    Raises:
        NotKnownError: It has not read them yet.
    """
    # The status is an output, and so always unknown at preview.
    if release.get("valueYamlFiles") and any(_has_unknown(release, key) for key in set(release) - {"status"}):
        raise NotKnownError("values does not have the content of valueYamlFiles yet", *where, "values")
    return section(release, "values")


def _has_unknown(parent: Any, key: str | int) -> bool:
    """Whether a value, or one in it, comes later."""
    try:
        value = parent[key]
    except UnknownValueError:
        return True
    if isinstance(value, Mapping):
        return any(_has_unknown(value, inner) for inner in value)
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return is_list and any(_has_unknown(value, index) for index in range(len(value)))


def has_queue(release: PolicyResource) -> bool:
    """Whether a release of Karpenter is given an interruption queue; one whose name comes later is one too."""
    try:
        return bool(section(values(release), "settings").get("interruptionQueue"))
    except UnknownValueError:
        if any(of(sources(release, "values"), QUEUE)):
            return True
        raise


def queues_of(release: PolicyResource, queues: Resources) -> Resources:
    """Those of the queues that a release of Karpenter is given, or may be given: the names of some come later."""
    try:
        given = section(values(release), "settings").get("interruptionQueue")
    except UnknownValueError:
        return list(of(sources(release, "values"), QUEUE))
    return [queue for queue in queues if known(queue, "name") in (given, None)]


def known(resource: PolicyResource, name: str) -> Any:
    """The value of a property; None if it is unknown, or not there."""
    with suppress(UnknownValueError):
        return resource.props.get(name)
    return None
