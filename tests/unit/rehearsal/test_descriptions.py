"""What files beside a stack's describe, looked at before anything is built or started."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import descriptions
from karpstack.rehearsal.session.stack_file import StackFile, StackFileError
from tests.unit.example_stack import ROOT

ON_AWS, ON_AZURE = ("existing-cluster", "eks-existing-cluster"), ("existing-aks-cluster", "aks-existing-cluster")


def example(folder: Path, where: str, stack: str) -> Path:
    """The stack file of an example, with what is described beside it."""
    for file in (ROOT / "examples" / where).glob(f"Pulumi.{stack}.*"):
        shutil.copy(file, folder)
    return folder / f"Pulumi.{stack}.yaml"


def refused(path: Path) -> str:
    with pytest.raises(StackFileError) as error:
        descriptions.check_stack(StackFile.load(path))
    return str(error.value)


def change(path: Path, changed: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    changed(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("example_of", [ON_AWS, ON_AZURE, ("addons-aks", "aks-addons")])
def test_nothing_is_wrong_with_the_examples(tmp_path: Path, example_of: tuple[str, str]) -> None:
    descriptions.check_stack(StackFile.load(example(tmp_path, *example_of)))


@pytest.mark.parametrize("example_of", [ON_AWS, ON_AZURE])
@pytest.mark.parametrize("what", ["cluster", "network"])
def test_broken_json_is_told_with_file_and_line(tmp_path: Path, example_of: tuple[str, str], what: str) -> None:
    path = example(tmp_path, *example_of)
    broken = path.with_name(f"{path.stem}.{what}.json")
    lines = broken.read_text().splitlines()
    broken.write_text("\n".join([*lines[:4], "  oops", *lines[4:]]))
    said = refused(path)
    assert f"{broken}, line 5, column" in said
    assert "mend that line, or write the file again as docs/how-to/" in said


ADDRESS = {"clientConfig": {"url": "https://127.0.0.1:18443/steal"}}
CALLING: dict[str, dict[str, Any]] = {
    "ValidatingWebhookConfiguration": {"webhooks": [{"name": "a.b.c", **ADDRESS}]},
    "MutatingWebhookConfiguration": {"webhooks": [{"name": "a.b.c"}, {"name": "a.b.d", **ADDRESS}]},
    "CustomResourceDefinition": {"spec": {"conversion": {"strategy": "Webhook", "webhook": ADDRESS}}},
}


@pytest.mark.parametrize("example_of", [ON_AWS, ON_AZURE])
@pytest.mark.parametrize("kind", CALLING)
def test_an_object_by_which_the_api_server_would_call_an_address_is_refused(
    tmp_path: Path, example_of: tuple[str, str], kind: str
) -> None:
    path = example(tmp_path, *example_of)
    item = {"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "innocent"}, **CALLING[kind]}
    change(path.with_name(f"{path.stem}.cluster.json"), lambda content: content.setdefault("items", []).append(item))
    assert f"items: the {kind} 'innocent' has a webhook with a url" in refused(path)


@pytest.mark.parametrize("example_of", [ON_AWS, ON_AZURE])
@pytest.mark.parametrize("what", ["cluster", "network"])
@pytest.mark.parametrize("content", [b"[" + b"{}," * 600_000 + b"{}]", b" " * (17 * 2**20)], ids=["values", "bytes"])
def test_a_file_is_bounded_before_anything_is_made_of_it(
    tmp_path: Path, example_of: tuple[str, str], what: str, content: bytes
) -> None:
    path = example(tmp_path, *example_of)
    path.with_name(f"{path.stem}.{what}.json").write_bytes(content)
    assert "more than 16 MiB or 500,000 values" in refused(path)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    path = example(tmp_path, *ON_AZURE)
    cluster, network = (path.with_name(f"{path.stem}.{what}.json") for what in ("cluster", "network"))

    def lose(described: dict[str, Any]) -> None:
        described["cluster"].pop("dnsPrefix")
        described["cluster"]["agentPoolProfiles"][0].pop("vmSize")

    change(cluster, lose)
    network.write_text("{")
    said = refused(path)
    assert "cluster.dnsPrefix: Field required; cluster.agentPoolProfiles.0.vmSize: Field required" in said
    assert f"{network}, line 1" in said


@pytest.mark.parametrize(("key", "what"), [("registryIds", "registry"), ("vaultIds", "vault")])
def test_a_registry_or_vault_that_is_not_described(tmp_path: Path, key: str, what: str) -> None:
    path = example(tmp_path, "addons-aks", "aks-addons")
    content = yaml.safe_load(path.read_text())
    (named, *_) = content["config"]["karpstack:addons"][key]
    content["config"]["karpstack:addons"][key] = [
        named.upper().replace("/SUBSCRIPTIONS", "/subscriptions"),
        f"{named}x",
    ]
    path.write_text(yaml.safe_dump(content))
    said = refused(path)
    assert f"karpstack:addons.{key} names the {what} {named}x: the simulated subscription" in said
    assert f"`az resource show --ids {named}x` prints" in said
    assert said.count("names the") == 1  # Azure does not tell upper from lower

    path.with_name(f"{path.stem}.network.json").unlink()
    assert "which is not there" in refused(path)


@pytest.mark.parametrize("is_built", [True, False])
def test_the_program_judges_before_an_engine_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_built: bool
) -> None:
    monkeypatch.setenv("KARPSTACK_CACHE", str(tmp_path / "cache"))
    for part in EngineSet.current().keys if is_built else ():
        EngineSet.current().part(part).mkdir(parents=True)
    asked: list[list[str]] = []

    def run(command: list[str], **more: Any) -> Any:
        asked.append(command)
        return subprocess.CompletedProcess(command, 2, "", "error: Pulumi.eks.yaml: karpstack:karpentr\n")

    monkeypatch.setattr(subprocess, "run", run)
    stack_file = StackFile.load(example(tmp_path, *ON_AWS))
    if is_built:
        descriptions.check_before_building(stack_file)
        assert not asked
        return
    with pytest.raises(StackFileError, match=r"^Pulumi\.eks\.yaml: karpstack:karpentr$"):
        descriptions.check_before_building(stack_file)
    assert asked[0][1:6] == ["-m", "karpstack", "preflight", "rights", "eks-existing-cluster"]
