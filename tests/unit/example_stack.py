"""The shipped stack files as the engine would hand them over, for tests to change one thing in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from karpstack.components import settings
from karpstack.components.settings.raw import structured
from tests.unit.made_certificates import certificate, private_key
from tests.unit.mock_engine import HUB, SUBSCRIPTION

ROOT = Path(__file__).resolve().parents[2]
STACKS = sorted(path.name.split(".")[1] for path in ROOT.glob("Pulumi.*.yaml"))


_OTHER = "22222222-2222-2222-2222-222222222222"
_ROLE = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
#: What stands in angle brackets in tables of stacks, and in `found.py`'s changes.
WORDS: dict[str, Any] = {
    "<registry>": "123456789012.dkr.ecr.us-east-1.amazonaws.com",
    "<proxy>": "http://proxy.corp.example:3128",
    "<hub>": HUB,
    "<other-hub>": HUB.replace(SUBSCRIPTION, _OTHER),
    "<subnets>": f"{HUB}/Microsoft.Network/virtualNetworks/hub/subnets",
    "<spoke>": f"{HUB}/Microsoft.Network/virtualNetworks/spoke/subnets",
    "<zone>": f"{HUB}/Microsoft.Network/privateDnsZones/privatelink.westus2.azmk8s.io",
    "<vnet>": f"{HUB}/Microsoft.Network/virtualNetworks/hub",
    "<subscription>": SUBSCRIPTION,
    "<role>": _ROLE,
    "<other-role>": _ROLE.replace(SUBSCRIPTION, _OTHER),
    "<network-contributor>": f"{_ROLE}/4d97b98b-1d4f-4787-a291-c67834d212e7",
    "<nodes>": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/karpstack-aks-nodes",
    "<shop-nodes>": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/MC_shop_Shop_1_westus2",
    "<cluster>": "--resource-group shop --name Shop_1",
    "<ssh-key>": f"ssh-rsa {'A' * 60}",
    "<certificate>": certificate(),
    "<another-certificate>": certificate("Another"),
    "<torn-certificate>": certificate()[:-60],
    "<server-certificate>": certificate("git.corp.example", authority=False),
    "<expired-certificate>": certificate(until="2026-11-21"),
    "<future-certificate>": certificate(since="2026-11-23"),
    "<eleven-certificates>": [certificate(f"Root {number}") for number in range(11)],
    "<private-key>": private_key(),
    "<node-config>": "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n",
    "<long-script>": f"#!/bin/sh\n{'#' * 13_000}",
}
#: What examples of existing clusters and networks say otherwise here: what the mocks have.
_MOCKED: dict[str, dict[str, Any]] = {
    "eks-existing-cluster": {"karpstack:network": {}},
    "aks-existing-cluster": {"azure-native:subscriptionId": SUBSCRIPTION},
    "eks-existing-vpc": {
        "karpstack:network": {
            "vpcId": "vpc-00000001",
            "vpcCidr": "10.0.0.0/16",
            "podCidr": "10.244.0.0/16",
            "serviceCidr": "172.20.0.0/16",
            "subnetIds": ["subnet-0000000a", "subnet-0000000b"],
        }
    },
}


def written(value: Any) -> Any:
    """A value of a table, with the words for what stands in angle brackets."""
    if isinstance(value, Mapping):
        return {written(key): written(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [written(entry) for entry in value]
    if not isinstance(value, str) or "<" not in value:
        return value
    return WORDS[value] if value in WORDS else re.sub(r"<[a-z-]+>", lambda word: WORDS.get(word[0], word[0]), value)


def stack_file(stack: str) -> Path:
    """The file of a stack of the project or of an example."""
    (file,) = (*ROOT.glob(f"Pulumi.{stack}.yaml"), *ROOT.glob(f"examples/*/Pulumi.{stack}.yaml"))
    return file


def as_shipped(stack: str) -> dict[str, Any]:
    """What stands under `config` in it."""
    config: dict[str, Any] = yaml.safe_load(stack_file(stack).read_text(encoding="utf-8"))["config"]
    return config


@cache
def configuration(stack: str) -> dict[str, Any]:
    """The same for the mocks' account; not to be changed."""
    config = as_shipped(stack)
    return config | _MOCKED.get(stack, {})


def example(stack: str = "eks", **changes: Any) -> dict[str, str]:
    """Raw configuration. A change is named like a key, `network__podCidr=...`; None removes the key."""
    return raw(changed(deepcopy(configuration(stack)), changes))


def changed(config: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with changes: `__` or dots lead into objects, `+` and `++` are further requirements."""
    for path, value in written(changes).items():
        if set(path) == {"+"}:
            (pool,) = config["karpstack:nodePools"].values()
            pool["template"]["spec"]["requirements"].append(value)
            continue
        # A region's key has its own namespace.
        *parents, last = [path] if ":" in path else re.split(r"__|\.", f"karpstack:{path}")
        section = config
        for step in parents:
            section = section.setdefault(step, {})
        if value is None:
            section.pop(last)
        else:
            section[last] = value
    return config


def raw(config: dict[str, Any]) -> dict[str, str]:
    """Configuration as the engine hands it over."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}


def loaded(stack: str, changes: Mapping[str, Any], **options: Any) -> Any:
    """A stack with changes, checked."""
    return settings.load(raw(changed(deepcopy(configuration(stack)), changes)), **options)


def eks(**changes: Any) -> settings.EksSettings:
    """The EKS example, checked."""
    loaded = settings.load(example(**changes))
    assert isinstance(loaded, settings.EksSettings)
    return loaded


def unjudged(**changes: Any) -> settings.EksSettings:
    """The EKS example, of which only the shape is checked: for those who find by themselves what does not exist."""
    values, problems = structured(example(**changes))
    assert not problems
    named = {key.removeprefix("karpstack:"): value for key, value in values.items()}
    return settings.EksSettings.model_validate(named, by_alias=True, by_name=False)


def aks(stack: str, **changes: Any) -> settings.AksSettings:
    """An AKS example, checked."""
    loaded = settings.load(example(stack, **changes))
    assert isinstance(loaded, settings.AksSettings)
    return loaded
