"""A stack on AKS behind a proxy, by the real engine: what AKS adds is no change, and what it does not do is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.azure import flat, resource
from tests.rehearsal.conftest import ROOT, RehearsedStack

STACK = "aks-proxy"
FILE = ROOT / "examples" / "proxy" / f"Pulumi.{STACK}.yaml"
SELF_HOSTED = ROOT / "Pulumi.aks-self-hosted.yaml"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[RehearsedStack]:
    made = RehearsedStack(StackFolder(STACK, tmp_path / "state" / STACK), written(tmp_path))
    yield made
    made.command("down", "--force")


def written(folder: Path, change: Callable[[dict[str, Any]], object] = lambda config: None) -> Path:
    """The example's file, with its configuration changed."""
    content = yaml.safe_load(FILE.read_text())
    change(content["config"])
    file = folder / FILE.name
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def _self_hosted(config: dict[str, Any]) -> None:
    config["karpstack:mode"] = "self-hosted"
    del config["karpstack:nodeProvisioning"]
    own = yaml.safe_load(SELF_HOSTED.read_text())["config"]
    config["karpstack:karpenter"] = own["karpstack:karpenter"]


def test_self_hosted_it_is_told_before_anything_is_made(tmp_path: Path) -> None:
    stack = RehearsedStack(StackFolder(STACK, tmp_path / "state" / STACK), written(tmp_path, _self_hosted))
    result = stack.command("up")
    assert result.returncode != 0
    assert not stack.made()
    assert "the stack's configuration has 2 errors; nothing was created in the cloud" in result.stdout
    assert "bootstrap disables proxies" in result.stdout
    assert "bootstrap disables custom certificate authorities" in result.stdout
    assert "Traceback" not in result.stdout


def test_what_aks_adds_is_no_change_and_what_it_does_not_do_is_refused(stack: RehearsedStack, tmp_path: Path) -> None:
    stack.succeed("up")
    cluster = resource(stack, "aks-cluster-control-plane")
    asked, answered = (cluster[one]["httpProxyConfig"]["noProxy"] for one in ("inputs", "outputs"))
    assert "konnectivity" not in asked
    assert {*asked, "konnectivity", cluster["outputs"]["fqdn"], "168.63.129.16"} < {*answered}
    for command in (("up", "--yes", "--skip-preview"), ("refresh", "--yes"), ("preview",)):
        stack.done("pulumi", *command, "--expect-no-changes", "--non-interactive")

    written(tmp_path, lambda config: config["karpstack:proxy"].update(noProxy=[".example"]))
    changed = stack.done("pulumi", "up", "--yes", "--non-interactive")
    assert "karpstack:proxy will be another: AKS drains and reimages every node" in flat(changed)
    assert resource(stack, "aks-cluster-control-plane")["outputs"]["httpProxyConfig"]["noProxy"][0] == "example"

    written(tmp_path, lambda config: config.pop("karpstack:proxy"))
    without = stack.by_hand("pulumi", "preview", "--non-interactive")
    assert without.returncode != 0
    assert "nothing takes a proxy away" in flat(without.stdout)

    written(tmp_path, lambda config: config.update({"karpstack:trustedCertificates": []}))
    stack.done("pulumi", "up", "--yes", "--non-interactive")
    assert not resource(stack, "aks-cluster-control-plane")["outputs"]["securityProfile"]["customCATrustCertificates"]
