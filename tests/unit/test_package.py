"""The Pulumi package: its schema, and what its components create."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest
import yaml
from pydantic import BaseModel

from karpstack.components.package import Provider
from karpstack.components.settings import AksSettings, EksSettings, ExistingAksSettings, ExistingEksSettings
from tests.unit.example_stack import ROOT, configuration, raw
from tests.unit.mock_engine import Deployment, deploy
from tests.unit.programs import made

SCHEMA = ROOT / "components" / "schema.json"


def test_the_schema_is_that_of_the_components(request: pytest.FixtureRequest) -> None:
    schema = json.loads(str(Provider().schema))
    schema["version"] = "0.0.0"  # that of the release
    if request.config.getoption("--update-goldens"):
        SCHEMA.write_text(json.dumps(schema, indent=2) + "\n")
    assert json.loads(SCHEMA.read_text()) == schema, f"{SCHEMA} differs; see --update-goldens"


@pytest.mark.parametrize(
    ("component", "new", "existing"),
    [("EksEnvironment", EksSettings, ExistingEksSettings), ("AksEnvironment", AksSettings, ExistingAksSettings)],
)
def test_the_arguments_are_the_settings(component: str, new: type[BaseModel], existing: type[BaseModel]) -> None:
    inputs = json.loads(SCHEMA.read_text())["resources"][f"karpstack:index:{component}"]
    described = {name: one["description"] for name, one in inputs["inputProperties"].items()}
    fields = {
        field.alias: field
        for field in new.model_fields.values()
        if field.alias and ":" not in str(field.validation_alias)
    }
    del fields["cloud"]
    assert described == {name: field.description for name, field in fields.items()}
    allowed = {field.alias for field in existing.model_fields.values()}
    assert allowed - {None, "cloud"} <= described.keys() | {"region", "profile", "assumeRoles", "subscriptionId"}
    required = {name for name, field in fields.items() if field.is_required()}
    # Of an existing cluster, the network may be left out.
    assert {*inputs["requiredInputs"], "network"} == required


def packaged(stack: str, component: str, **changes: Any) -> Deployment:
    """What a component of the package registers with the arguments of a stack file, as Pulumi sends them."""
    given = configuration(stack)
    inputs = {key.removeprefix("karpstack:"): value for key, value in given.items() if key.startswith("karpstack:")}
    del inputs["cloud"]
    sent = json.loads(json.dumps(inputs), parse_int=float) | changes
    stays = {key: value for key, value in given.items() if not key.startswith("karpstack:")}

    def program() -> None:
        pulumi.runtime.set_all_config(raw(stays))
        Provider().construct(component[:3].lower(), f"karpstack:index:{component}", sent)

    return deploy(program)


@pytest.mark.parametrize(("stack", "component"), [("eks", "EksEnvironment"), ("aks-nap", "AksEnvironment")])
def test_an_environment_of_the_package_has_the_resources_of_the_program(stack: str, component: str) -> None:
    found, expected = packaged(stack, component).resources.values(), made(stack).resources.values()
    assert {(each.type, each.name) for each in found} == {
        (f"karpstack:index:{component}", component[:3].lower()),
        *((each.type, each.name) for each in expected),
    }
    custom = {each.name: each.inputs for each in found if each.request.custom}
    assert custom == {each.name: each.inputs for each in expected if each.request.custom}


def test_the_example_can_be_created() -> None:
    example = yaml.safe_load((ROOT / "examples" / "package" / "Pulumi.yaml").read_text())["resources"]["shop"]

    def program() -> None:
        pulumi.runtime.set_all_config({"aws:region": "us-east-1"})
        Provider().construct("shop", "karpstack:index:EksEnvironment", example["properties"])

    assert example["type"] == "karpstack:EksEnvironment"
    assert "shop-cluster-control-plane" in {each.name for each in deploy(program).resources.values()}


def test_an_output_as_an_argument_is_refused() -> None:
    with pytest.raises(pulumi.InputPropertiesError, match=r"network: is or holds an output.*pass a plain value"):
        packaged("eks", "EksEnvironment", network={"vpcCidr": pulumi.Output.from_input("10.0.0.0/16")})


def test_a_refusal_has_no_traceback() -> None:
    with pytest.raises(pulumi.InputPropertiesError, match=r"network.vpcCidr = \"10.0.0.0/99\"") as refused:
        packaged("eks", "EksEnvironment", network={"vpcCidr": "10.0.0.0/99"})
    assert "File" not in str(refused.value)
