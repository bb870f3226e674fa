"""A stack behind a proxy, by the real engine and the production Karpenter: what reaches the machines, and who works."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import ROOT, RehearsedStack, descendants

STACK = "eks-proxy"
FILE = ROOT / "examples" / "proxy" / f"Pulumi.{STACK}.yaml"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[RehearsedStack]:
    file = tmp_path / FILE.name
    file.write_text(FILE.read_text())
    made = RehearsedStack(StackFolder(STACK, tmp_path / "state" / STACK), file)
    yield made
    made.command("down", "--force")


def test_machines_are_told_and_the_controller_works_with_what_it_is_told(stack: RehearsedStack) -> None:
    config = yaml.safe_load(FILE.read_text())["config"]
    url, (root,) = config["karpstack:proxy"]["https"], config["karpstack:trustedCertificates"]
    own = config["karpstack:nodeClasses"]["default"]["userData"]
    stack.succeed("up")
    stack.done("kubectl", "create", "deployment", "web", "--image=registry.k8s.io/pause:3.10")
    claim = stack.wait_for("nodeclaims", "karpenter.sh", lambda one: one.get("status", {}).get("nodeName"))
    assert claim, "Karpenter has launched nothing"

    ec2 = stack.aws("ec2")
    launched = user_data(ec2, claim["status"]["providerID"].rpartition("/")[2])
    (egress, (_, script), (_, theirs), (_, karpenters)) = parts(launched)
    assert egress[0] == "application/node.eks.aws"
    variables = json.loads(egress[1])["spec"]["instance"]["environment"]["default"]
    assert variables["HTTPS_PROXY"] == url
    assert "169.254.170.23" in variables["NO_PROXY"].split(",")
    assert root in script
    assert "/etc/containerd/certs.d/docker.io" in script
    assert theirs == own
    assert yaml.safe_load(karpenters)["spec"]["cluster"]["name"] == "karpstack-proxy"

    by_group = [{"Name": "tag:eks:nodegroup-name", "Values": ["system-*"]}]
    for reservation in ec2.describe_instances(Filters=by_group)["Reservations"]:
        for instance in reservation["Instances"]:
            assert parts(user_data(ec2, instance["InstanceId"])) == [egress, ("text/x-shellscript", script)]

    (controller,) = (one for one in descendants(stack.info) if one.name() == "karpenter-aws")
    given = controller.environ()
    assert (given["HTTPS_PROXY"], given["SSL_CERT_DIR"]) == (url, "/etc/karpstack/certificates")


def user_data(ec2: Any, instance: str) -> str:
    answer = ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
    return base64.b64decode(answer["UserData"]["Value"]).decode()


def parts(archive: str) -> list[tuple[str, str]]:
    """Media type and text of each part of a MIME archive."""
    found: Any = message_from_string(archive)
    return [(part.get_content_type(), part.get_payload()) for part in found.get_payload()]
