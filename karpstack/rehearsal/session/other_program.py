"""A Pulumi program that is not karpstack's: its unsupported resources, its releases, and what its stack has.

The program runs unchanged. All facts come from Pulumi: the requests of a preview to the attached providers, the events
of the engine, and the state of the stack.
"""

from __future__ import annotations

import json
import re
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from karpstack.rehearsal.attachment.survey import NOTHING, Survey
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session.clouds import CLOUDS
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.rehearsal.state.folder import StackFolder
from karpstack.text.yaml_file import YamlError, read

#: The package of resources that a program defines itself (dynamic providers).
_DYNAMIC: Final = "pulumi-python"
_RELEASE: Final = "kubernetes:helm.sh/v3:Release"
_NODE_POOL: Final = "kubernetes:karpenter.sh/v1:NodePool"
#: What the stack's outputs call the version of a Karpenter that the cloud runs.
_MANAGED: Final = "managed"
#: What Pulumi says of a package that has neither a simulated provider nor a plugin.
_VERSION_OF_API: Final = re.compile(r"/v[0-9a-z]+(?=:)")
_NO_PLUGIN: Final = re.compile(r"no resource plugin 'pulumi-resource-([\w-]+)'")
#: A key of what Pulumi writes to its state in place of a secret.
_HIDDEN: Final = "4dabf18193072939515e22adb298388d"


class UnsupportedError(ValueError):
    """The program needs resources or charts that the rehearsal does not have; the text names each."""


@dataclass(frozen=True)
class _Resource:
    type: str
    name: str
    inputs: Mapping[str, Any]
    custom: bool


def check(folder: Path) -> None:
    """Check that a folder has a program in Python.

    Raises:
        StackFileError: It has none.
    """
    runtime = _project(folder).get("runtime")
    name = runtime.get("name") if isinstance(runtime, dict) else runtime
    if name != "python":
        raise StackFileError(
            f"{folder / 'Pulumi.yaml'}: runtime = {name!r}: the rehearsal runs programs in Python alone, so nothing "
            "was started"
        )


@contextmanager
def surveyed(folder: StackFolder, program: Path, attached: Collection[str]) -> Iterator[dict[str, int]]:
    """Record what a preview asks for and the rehearsal does not have.

    Packages without a simulated provider get one for the time of the preview, which supports nothing.

    Args:
        attached: The packages that have a simulated provider.

    Yields:
        Name of each other package of the program, and the port of its provider.

    Raises:
        UnsupportedError: Something is unsupported, whatever else the block raises.
    """
    from karpstack.rehearsal.attachment.server import ProviderServer  # loads Pulumi's SDK

    survey = Survey(folder.survey)
    survey.begin()
    try:
        with ExitStack() as stack:
            ports = {}
            for package in sorted(_packages(program) - set(attached)):
                server = ProviderServer(package, "0.0.0", NOTHING, survey)
                ports[package] = server.start()
                stack.callback(server.stop)
            yield ports
    except Exception:
        # The error is a consequence of these.
        _refuse([*survey.end(), *_unknown_kinds(folder), *_without_plugin(folder)])
        raise
    finally:
        noted = survey.end()
    _refuse([*noted, *_unknown_kinds(folder)])


def check_charts(folder: StackFolder, engines: EngineSet) -> None:
    """Check that the rehearsal has each chart of the preview; the provider cannot, before there is a cluster.

    Raises:
        UnsupportedError: A chart is missing.
    """
    from karpstack.rehearsal.cluster.charts import ChartNotFoundError, Charts

    missing = []
    for one in _previewed(folder):
        if one.type == _RELEASE:
            try:
                options = one.inputs.get("repositoryOpts")  # no mapping while it is unknown
                repository = options.get("repo") if isinstance(options, dict) else None
                Charts(engines).find(str(one.inputs.get("chart")), one.inputs.get("version"), repository)
            except ChartNotFoundError as error:
                missing.append(f"{one.type} {one.name}: {error}")
    _refuse(missing)


def _refuse(missing: list[str]) -> None:
    if missing:
        listed = "\n  ".join(missing)
        raise UnsupportedError(
            f"the rehearsal does not support all that the program needs, so nothing was created:\n  {listed}\n"
            "docs/reference/rehearsed-types.md lists what it supports. Leave the rest out of the rehearsal, for "
            "example by a setting of your program"
        )


def _unknown_kinds(folder: StackFolder) -> Iterator[str]:
    from karpstack.rehearsal.cluster import provider

    for one in _previewed(folder):
        if one.custom and one.type.startswith(f"{provider.PACKAGE}:") and not provider.is_known(one.type):
            yield f"{one.type} {one.name}"


def _without_plugin(folder: StackFolder) -> Iterator[str]:
    """Yield the packages at which Pulumi ended the preview, because it has no plugin for them."""
    events = folder.preview_events.read_text(encoding="utf-8") if folder.preview_events.is_file() else ""
    for package in sorted(set(_NO_PLUGIN.findall(events))):
        yield f"package {package}: no plugin; the preview ended there"


def releases(folder: StackFolder, stack_file: StackFile) -> StackFile:
    """Return the stack file with the versions that the preview asks for."""
    found, kind = [*_previewed(folder)], CLOUDS[stack_file.cloud].cluster
    versions = (one.inputs.get(kind.version) for one in found if one.type == kind.token)
    charts = {chart: one.inputs for one in found if one.type == _RELEASE for chart in [_chart(one.inputs)]}
    return stack_file.asking(
        kubernetes=next((".".join(one.split(".")[:2]) for one in versions if isinstance(one, str)), None),
        karpenter=charts.get("karpenter", {}).get("version"),
        cilium=charts.get("cilium", {}).get("version"),
    )


def outputs(folder: StackFolder, stack_file: StackFile) -> dict[str, Any]:
    """Return the outputs that a scale test needs, taken from the state of the stack.

    Raises:
        StackFileError: The stack has no cluster with Karpenter, or one of the outputs is a secret.
    """
    found, kind = [*_made(folder)], CLOUDS[stack_file.cloud].cluster
    clusters = [one.inputs for one in found if one.type == kind.token]
    charts = [one.inputs for one in found if one.type == _RELEASE and _chart(one.inputs) == "karpenter"]
    cluster: Mapping[str, Any] = clusters[0] if clusters else {}
    managed = _known(kind.token, cluster, kind.provisioning, "mode") == "Auto"
    if not clusters or not (charts or managed):
        hosted = f", nor {kind.provisioning} with the mode Auto" if kind.provisioning else ""
        raise StackFileError(
            f"{stack_file.path}: the stack has no {_RELEASE} of the chart karpenter on a {kind.token}{hosted}, so "
            "there is nothing to test"
        )
    release: Mapping[str, Any] = {"version": _MANAGED} if managed else charts[0]
    settings = ("values", "settings")
    gates = _known(_RELEASE, release, *settings, "featureGates")
    brings = managed and _known(kind.token, cluster, kind.provisioning, "defaultNodePools") != "None"
    return {
        "cloud": stack_file.cloud,
        "region": stack_file.region,
        "clusterName": _known(kind.token, cluster, kind.name),
        "interruptionQueue": _known(_RELEASE, release, *settings, "interruptionQueue") or "",
        "karpenterVersion": _known(_RELEASE, release, "version"),
        "karpenterNamespace": _known(_RELEASE, release, "namespace") or "",
        "featureGates": sorted(name for name, on in gates.items() if on is True) if isinstance(gates, dict) else [],
        "nodePools": _names(found, _NODE_POOL),
        "nodeClasses": _names(found, kind.node_class),
        "defaultNodePools": [*kind.default_node_pools] if brings else [],
    }


def _names(found: list[_Resource], kind: str) -> list[str]:
    """Return the names of all objects of a kind, in any version of its API."""
    wanted = _VERSION_OF_API.sub("", kind)
    named = (
        _known(kind, one.inputs, "metadata", "name") for one in found if _VERSION_OF_API.sub("", one.type) == wanted
    )
    return sorted(name for name in named if isinstance(name, str))


def _known(kind: str, inputs: Mapping[str, Any], *path: str) -> Any:
    """Return an input of a resource, by the keys that lead to it; None where there is none.

    Raises:
        StackFileError: It is a secret, or inside of one.
    """
    found: Any = inputs
    for depth, key in enumerate(path, 1):
        found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, dict) and _HIDDEN in found:
            raise StackFileError(
                f"{kind}: {'.'.join(path[:depth])} is a secret, so scale tests cannot read {path[-1]}, and no test was "
                "started; mark only the secret values with pulumi.Output.secret, then run `karpstack up` again"
            )
    return found


def _chart(inputs: Mapping[str, Any]) -> str:
    return str(inputs.get("chart", "")).rstrip("/").rpartition("/")[2]


def _previewed(folder: StackFolder) -> Iterator[_Resource]:
    events = folder.preview_events
    for line in events.read_text(encoding="utf-8").splitlines() if events.is_file() else ():
        with suppress(ValueError):  # the last one, of a preview that was ended
            step = (json.loads(line).get("resourcePreEvent") or {}).get("metadata") or {}
            if new := step.get("new"):
                yield _resource(new)


def _made(folder: StackFolder) -> Iterator[_Resource]:
    for state in (folder.pulumi / "state" / ".pulumi" / "stacks").glob(f"*/{folder.stack}.json"):
        latest = json.loads(state.read_text(encoding="utf-8"))["checkpoint"]["latest"] or {}
        for each in latest.get("resources") or ():
            yield _resource(each)


def _resource(said: Mapping[str, Any]) -> _Resource:
    name = str(said["urn"]).rpartition("::")[2]
    return _Resource(said["type"], name, said.get("inputs") or {}, bool(said.get("custom")))


def is_up(folder: StackFolder) -> bool:
    """Return whether the stack that is up belongs to a program that is not karpstack's."""
    try:
        return StackFile.load(folder.stack_configuration, described=False, any_program=True).other_program
    except StackFileError:
        return False


def _packages(program: Path) -> set[str]:
    """Return the Pulumi packages of the program's Python environment, without the project's own packages."""
    project = _project(program)
    runtime = project.get("runtime")
    options = runtime.get("options") if isinstance(runtime, dict) else None
    virtualenv = str(options.get("virtualenv") or "") if isinstance(options, dict) else ""
    own = [*(program / virtualenv).glob("lib/python*/site-packages")]
    installed = own if virtualenv and own else [Path(sysconfig.get_path("purelib"))]
    found = {_DYNAMIC}
    for folder in installed:
        for file in folder.glob("*/pulumi-plugin.json"):
            plugin = json.loads(file.read_text(encoding="utf-8"))
            found.add(str(plugin.get("name") or file.parent.name.removeprefix("pulumi_").replace("_", "-")))
    packages = project.get("packages")
    return found - {*packages} if isinstance(packages, dict) else found


def _project(folder: Path) -> dict[str, Any]:
    path = folder / "Pulumi.yaml"
    try:
        project = read(path)
    except (OSError, YamlError) as error:
        raise StackFileError(f"{path}: {error}") from error
    return project if isinstance(project, dict) else {}
