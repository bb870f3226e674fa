"""A program that is not karpstack's: what is known of it by its files, its preview and its state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.azure.clusters.provisioning import default_manifests
from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import other_program
from karpstack.rehearsal.session.clouds import CLOUDS
from karpstack.rehearsal.session.other_program import UnsupportedError
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from karpstack.rehearsal.state.folder import StackFolder

CHART = "oci://public.ecr.aws/karpenter/karpenter"
CLUSTER = ("aws:eks/cluster:Cluster", {"name": "shop", "version": "1.35"})
RELEASE = (
    "kubernetes:helm.sh/v3:Release",
    {
        "chart": CHART,
        "version": "1.14.3",
        "namespace": "karpenter",
        "values": {
            "settings": {"interruptionQueue": "events", "featureGates": {"nodeRepair": True, "staticCapacity": False}}
        },
    },
)


AKS = "azure-native:containerservice:ManagedCluster"
NODE_POOL = ("kubernetes:karpenter.sh/v1:NodePool", {"metadata": {"name": "default"}})
AKS_NODE_CLASS = ("kubernetes:karpenter.azure.com/v1beta1:AKSNodeClass", {"metadata": {"name": "ubuntu"}})


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    return StackFolder("dev", tmp_path / "state" / "dev").create()


def loaded(folder: Path, **config: str) -> StackFile:
    path = folder / "Pulumi.dev.yaml"
    path.write_text(yaml.safe_dump({"config": config}))
    return StackFile.load(path, any_program=True)


@pytest.fixture
def stack_file(tmp_path: Path) -> StackFile:
    return loaded(tmp_path, **{"aws:region": "us-east-1", "shop:size": "2"})


@pytest.fixture
def aks_file(tmp_path: Path) -> StackFile:
    return loaded(tmp_path, **{"azure-native:location": "West US 2"})


def written(resources: tuple[tuple[str, Any], ...]) -> list[dict[str, Any]]:
    return [
        {"urn": f"urn:pulumi:dev::shop::{type}::mine", "type": type, "custom": True, "inputs": inputs}
        for type, inputs in resources
    ]


def previewed(folder: StackFolder, *resources: tuple[str, Any]) -> None:
    events = [{"resourcePreEvent": {"metadata": {"op": "create", "new": one}}} for one in written(resources)]
    lines = [{"preludeEvent": {}}, *events, {"resourcePreEvent": {"metadata": {"op": "delete", "old": {}}}}]
    folder.preview_events.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def made(folder: StackFolder, *resources: tuple[str, Any]) -> None:
    state = folder.pulumi / "state" / ".pulumi" / "stacks" / "shop" / "dev.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({"checkpoint": {"latest": {"resources": written(resources)}}}))


def test_its_stack_file_needs_a_region_and_nothing_of_karpstack(stack_file: StackFile) -> None:
    assert (stack_file.cloud, stack_file.region, stack_file.other_program) == ("aws", "us-east-1", True)
    with pytest.raises(StackFileError, match="for a program that is not karpstack's: --program FOLDER"):
        StackFile.load(stack_file.path)


def test_its_location_says_that_it_is_of_azure(aks_file: StackFile) -> None:
    assert (aks_file.cloud, aks_file.region, aks_file.other_program) == ("azure", "westus2", True)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "add for example `aws:region: us-east-1` or `azure-native:location: westus2`"),
        ({"azure-native:location": "west us; rm"}, "is the name of no region"),
        ({"aws:region": "us-east-1", "karpstack:name": "x"}, "karpstack:cloud is None"),
    ],
)
def test_other_stack_files_are_refused(tmp_path: Path, config: dict[str, str], said: str) -> None:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_text(yaml.safe_dump({"config": config}))
    with pytest.raises(StackFileError, match=said):
        StackFile.load(path, any_program=True)


@pytest.mark.parametrize("runtime", ["nodejs", {"name": "go"}, None])
def test_a_program_in_another_language_is_refused(tmp_path: Path, runtime: object) -> None:
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "shop", "runtime": runtime}))
    with pytest.raises(StackFileError, match="programs in Python alone"):
        other_program.check(tmp_path)


@pytest.mark.parametrize("runtime", ["python", {"name": "python", "options": {"virtualenv": "venv"}}])
def test_a_program_in_python_is_good(tmp_path: Path, runtime: object) -> None:
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump({"name": "shop", "runtime": runtime}))
    other_program.check(tmp_path)


def test_the_preview_says_which_releases_are_needed(folder: StackFolder, stack_file: StackFile) -> None:
    previewed(folder, CLUSTER, RELEASE)
    assert other_program.releases(folder, stack_file).releases == ("1.35", "1.14.3", "")
    previewed(folder, ("aws:eks/cluster:Cluster", {"name": "shop"}))
    assert other_program.releases(folder, stack_file).releases == ("", "", "")


@pytest.mark.parametrize("more", [{"packages": {}}, {"packages": [{}]}, {"packages": 3}])
@pytest.mark.parametrize("options", ["text", ["venv"], {"virtualenv": None}])
def test_a_project_of_another_shape_ends_no_survey(
    folder: StackFolder, tmp_path: Path, options: object, more: dict[str, object]
) -> None:
    project = {"name": "shop", "runtime": {"name": "python", "options": options}, **more}
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    assert "pulumi-python" in survey(folder, tmp_path)


def test_the_preview_says_which_kubernetes_aks_needs(folder: StackFolder, aks_file: StackFile) -> None:
    previewed(folder, (AKS, {"resourceName": "shop", "kubernetesVersion": "1.35.4"}))
    assert other_program.releases(folder, aks_file).releases == ("1.35", "", "")
    previewed(folder, (AKS, {"kubernetesVersion": None}), CLUSTER)
    assert other_program.releases(folder, aks_file).releases == ("", "", "")


def survey(folder: StackFolder, program: Path, noted: str = "") -> set[str]:
    with other_program.surveyed(folder, program, ["aws", "kubernetes"]) as ports, folder.survey.open("a") as file:
        file.write(noted)
    return set(ports)


def test_packages_without_a_simulated_provider_get_one_for_the_survey(folder: StackFolder, tmp_path: Path) -> None:
    options = {"name": "python", "options": {"virtualenv": "venv"}}
    project = {"name": "shop", "runtime": options, "packages": {"own": "./own"}}
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    site = tmp_path / "venv" / "lib" / "python3.13" / "site-packages"
    for package, plugin in (("pulumi_random", {"name": "random"}), ("pulumi_aws", {}), ("pulumi_own", {})):
        (site / package).mkdir(parents=True)
        (site / package / "pulumi-plugin.json").write_text(json.dumps(plugin))
    assert survey(folder, tmp_path) == {"random", "pulumi-python"}


def test_all_unsupported_types_are_listed(folder: StackFolder, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    previewed(folder, CLUSTER, ("kubernetes:yaml/v2:ConfigFile", {}), ("kubernetes:apps/v1:Deployment", {}))
    with pytest.raises(UnsupportedError) as refused:
        survey(folder, tmp_path, json.dumps(["random:index/randomPet:RandomPet", "pet", ""]) + "\n{")
    assert str(refused.value).splitlines()[1:3] == [
        "  random:index/randomPet:RandomPet pet",
        "  kubernetes:yaml/v2:ConfigFile mine",
    ]
    assert not folder.survey.exists()


def test_a_package_without_a_plugin_is_listed(folder: StackFolder, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    text = "\u003c{%reset%}\u003eno resource plugin 'pulumi-resource-random' found in the workspace or on your $PATH"
    folder.preview_events.write_text(2 * f"{json.dumps({'diagnosticEvent': {'message': text}})}\n")
    with pytest.raises(UnsupportedError) as refused, other_program.surveyed(folder, tmp_path, []):
        raise RuntimeError("the preview failed")
    assert [line for line in str(refused.value).splitlines() if line.startswith("  ")] == [
        "  package random: no plugin; the preview ended there"
    ]


def test_an_error_of_the_preview_stays_where_everything_is_supported(folder: StackFolder, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    with pytest.raises(RuntimeError, match="the preview failed"), other_program.surveyed(folder, tmp_path, []):
        raise RuntimeError("the preview failed")


def test_charts_outside_the_catalogue_are_listed(folder: StackFolder) -> None:
    nginx = {"chart": "ingress-nginx", "version": "4.0.0", "repositoryOpts": {"repo": "https://example.com"}}
    previewed(folder, (RELEASE[0], {**RELEASE[1], "version": "1.15.1"}), (RELEASE[0], nginx))
    with pytest.raises(UnsupportedError) as refused:
        other_program.check_charts(folder, EngineSet.current())
    assert "no chart ingress-nginx of https://example.com" in str(refused.value)
    assert "/karpenter/karpenter:" not in str(refused.value)


def test_a_scale_test_gets_its_outputs_from_the_state(folder: StackFolder, stack_file: StackFile) -> None:
    made(
        folder,
        CLUSTER,
        RELEASE,
        NODE_POOL,
        ("kubernetes:karpenter.k8s.aws/v1beta1:EC2NodeClass", {"metadata": {"name": "al2023"}}),
    )
    assert other_program.outputs(folder, stack_file) == {
        "cloud": "aws",
        "region": "us-east-1",
        "clusterName": "shop",
        "interruptionQueue": "events",
        "karpenterVersion": "1.14.3",
        "karpenterNamespace": "karpenter",
        "featureGates": ["nodeRepair"],
        "nodePools": ["default"],
        "nodeClasses": ["al2023"],
        "defaultNodePools": [],
    }


@pytest.mark.parametrize(
    ("profile", "brought"),
    [
        ({"mode": "Auto"}, ["default", "system-surge"]),
        ({"mode": "Auto", "defaultNodePools": "None"}, []),
    ],
)
def test_a_scale_test_of_node_auto_provisioning_needs_no_release(
    profile: dict[str, str], brought: list[str], folder: StackFolder, aks_file: StackFile
) -> None:
    made(folder, (AKS, {"resourceName": "shop", "nodeProvisioningProfile": profile}), NODE_POOL, AKS_NODE_CLASS)
    assert other_program.outputs(folder, aks_file) == {
        "cloud": "azure",
        "region": "westus2",
        "clusterName": "shop",
        "interruptionQueue": "",
        "karpenterVersion": "managed",
        "karpenterNamespace": "",
        "featureGates": [],
        "nodePools": ["default"],
        "nodeClasses": ["ubuntu"],
        "defaultNodePools": brought,
    }


def test_a_scale_test_of_karpenters_own_release_on_aks(folder: StackFolder, aks_file: StackFile) -> None:
    made(folder, (AKS, {"resourceName": "shop", "nodeProvisioningProfile": {"mode": "Manual"}}), RELEASE)
    found = other_program.outputs(folder, aks_file)
    assert (found["karpenterVersion"], found["karpenterNamespace"]) == ("1.14.3", "karpenter")
    assert found["defaultNodePools"] == []


def test_the_node_pools_that_aks_creates_are_those_of_the_simulated_aks() -> None:
    pools = [one["metadata"]["name"] for one in default_manifests() if one["kind"] == "NodePool"]
    assert tuple(pools) == CLOUDS["azure"].cluster.default_node_pools


SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:a"}


@pytest.mark.parametrize(
    ("kind", "inputs", "said"),
    [
        (CLUSTER[0], {"name": SECRET}, "aws:eks/cluster:Cluster: name is a secret"),
        (RELEASE[0], {**RELEASE[1], "values": SECRET}, "values is a secret, so scale tests cannot read featureGates"),
        (
            RELEASE[0],
            {**RELEASE[1], "values": {"settings": {"interruptionQueue": SECRET}}},
            "settings.interruptionQueue",
        ),
        (NODE_POOL[0], {"metadata": SECRET}, "metadata is a secret, so scale tests cannot read name"),
    ],
)
def test_a_scale_test_needs_what_is_a_secret(
    folder: StackFolder, stack_file: StackFile, kind: str, inputs: dict[str, Any], said: str
) -> None:
    made(folder, (kind, inputs), CLUSTER, RELEASE)
    with pytest.raises(StackFileError, match=said):
        other_program.outputs(folder, stack_file)


@pytest.mark.parametrize("values", [None, "x", {"settings": None}, {"settings": {"featureGates": "a=true"}}])
def test_values_of_other_shapes_say_nothing(folder: StackFolder, stack_file: StackFile, values: Any) -> None:
    made(
        folder,
        CLUSTER,
        (RELEASE[0], {**RELEASE[1], "values": values}),
        (NODE_POOL[0], {"metadata": None}),
        (NODE_POOL[0], {}),
    )
    found = other_program.outputs(folder, stack_file)
    assert (found["interruptionQueue"], found["featureGates"], found["nodePools"]) == ("", [], [])


def test_a_stack_without_karpenter_cannot_be_tested(folder: StackFolder, stack_file: StackFile) -> None:
    made(folder, CLUSTER)
    with pytest.raises(StackFileError, match="there is nothing to test"):
        other_program.outputs(folder, stack_file)


def test_an_aks_cluster_without_karpenter_cannot_be_tested(folder: StackFolder, aks_file: StackFile) -> None:
    made(folder, (AKS, {"resourceName": "shop"}))
    with pytest.raises(StackFileError, match="nor nodeProvisioningProfile with the mode Auto"):
        other_program.outputs(folder, aks_file)
