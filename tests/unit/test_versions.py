"""components.versions: the pins that can be held against what is installed."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from components import versions
from tests.unit.test_aks import shipped


@pytest.mark.parametrize("resource", versions.AZURE_APIS)
def test_azure_api_versions_are_the_reviewed_ones(resource: str) -> None:
    module, name = resource.split(".")
    # Not inspect.getsource: it parses, and Python's parser fails now and then while another thread compiles.
    source = Path(inspect.getfile(getattr(import_module(f"pulumi_azure_native.{module}"), name))).read_text()
    assert re.findall(r"Uses Azure REST API version ([\w-]+)", source)[0] == versions.AZURE_APIS[resource]


@pytest.mark.parametrize("stack", ["aks-nap", "aks-self-hosted"])
def test_every_azure_resource_in_use_has_a_reviewed_api(stack: str) -> None:
    used = {
        each.type.removeprefix("azure-native:").replace(":", ".")
        for each in shipped(stack).resources.values()
        if each.type.startswith("azure-native:")
    }
    assert used <= set(versions.AZURE_APIS)
