"""The stand-in against the SDK: a misspelt type or property cannot hide, neither in what it takes nor in answers."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pulumi_azure_native
import pytest
from pulumi._types import input_type_py_to_pulumi_names

from karpstack.rehearsal.azure.provider import TYPES
from karpstack.rehearsal.azure.resource import AzureResource
from tests.unit.rehearsal.provider_azure_world import LIVES, Provider


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


def _module(kind: type[AzureResource]) -> Any:
    _, module, name = kind.token.split(":")
    return _file_of(module, name)


def _file_of(module: str, name: str) -> Any:
    # By attribute, as programs do: importing a file past the SDK's lazy packages leaves them half loaded.
    return sys.modules[getattr(getattr(pulumi_azure_native, module), name).__module__]


def _sdk(kind: type[AzureResource]) -> Any:
    return getattr(_module(kind), kind.token.rsplit(":", 1)[1])


def _arguments(kind: type[AzureResource]) -> Any:
    """The class of the inputs; where a nested type has its name, the generator calls it otherwise."""
    name = _sdk(kind).__name__
    return getattr(_module(kind), f"{name}InitArgs", None) or getattr(_module(kind), f"{name}Args")


def _outputs(kind: type[AzureResource]) -> set[str]:
    found = {_camel(name) for name, member in inspect.getmembers(_sdk(kind)) if isinstance(member, property)}
    return found - {"id", "urn", "pulumiResourceName", "pulumiResourceType"}


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def _loose(names: Any) -> set[str]:
    """Names without their capitals: Python's tell nothing of azurePortalFQDN's."""
    return {name.lower() for name in names}


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_type_version_and_inputs_are_the_sdks(kind: type[AzureResource]) -> None:
    assert _sdk(kind).pulumi_type == kind.token
    assert re.search(rf"Uses Azure REST API version {kind.default_version}\.", inspect.getsource(_module(kind)))
    assert kind.accepts <= set(input_type_py_to_pulumi_names(_arguments(kind)).values()), "no input of the SDK"
    assert {path.split(".")[0] for path in kind.replace_on} <= kind.accepts
    assert kind.required | kind.nested <= kind.body


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_what_the_sdk_requires_is_required(kind: type[AzureResource]) -> None:
    names = input_type_py_to_pulumi_names(_arguments(kind))
    needed = {
        names[name]
        for name, parameter in inspect.signature(_arguments(kind).__init__).parameters.items()
        if name in names and parameter.default is inspect.Parameter.empty
    }
    assert needed <= kind.required | set(kind.parameters)
    assert kind.required <= needed


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_outputs_are_the_sdks(provider: Provider, kind: type[AzureResource]) -> None:
    name = kind.token.rsplit(":", 1)[1]
    outputs = provider.create(name, **LIVES[name].inputs(provider)).outputs
    assert _loose(outputs) <= _loose(_outputs(kind))
    assert _loose(kind.outputs) <= _loose(_outputs(kind))


@pytest.mark.parametrize(
    "function",
    [
        "authorization:getClientConfig",
        "network:getVirtualNetwork",
        "containerservice:listManagedClusterUserCredentials",
        "containerservice:listManagedClusterAdminCredentials",
    ],
)
def test_functions_are_the_sdks(provider: Provider, function: str) -> None:
    module, name = function.split(":")
    file = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    source = inspect.getsource(_file_of(module, file))
    assert f"'azure-native:{function}'" in source
    assert f"azure-native:{function}" in provider.invokes


def test_what_the_sdk_sends_by_itself_is_known() -> None:
    for kind in TYPES:
        source = inspect.getsource(_sdk(kind)._internal_init)
        names = input_type_py_to_pulumi_names(_arguments(kind))
        sent = {names[name] for name in re.findall(r"if (\w+) is None:\n\s+\1 = ", source)}
        assert sent <= kind.accepts, kind.token
