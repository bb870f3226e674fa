"""A stack out of whose VPC nothing leads, by the real engine: `up` stops before anything is made where it cannot work.

That the example comes up, with its stories, is for `make soak` with its CONFIG_FILE.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from rehearsal.state.folder import StackFolder
from tests.rehearsal.conftest import ROOT, RehearsedStack

STACK = "eks-private"
FILE = ROOT / "examples" / "private" / f"Pulumi.{STACK}.yaml"


def test_what_is_missing_is_told_before_anything_is_made(tmp_path: Path) -> None:
    content = yaml.safe_load(FILE.read_text())
    content["config"]["karpstack:network"]["endpoints"] = ["ec2", "ecr.api", "ecr.dkr", "eks", "s3", "ssm", "sts"]
    del content["config"]["karpstack:images"]
    file = tmp_path / FILE.name
    file.write_text(yaml.safe_dump(content))
    stack = RehearsedStack(StackFolder(STACK, tmp_path / "state" / STACK), file)
    result = stack.command("up")
    assert result.returncode != 0
    assert not stack.made()
    assert "the stack's configuration has 2 errors; nothing was created in the cloud" in result.stdout
    assert "lacks sqs, eks-auth, and with natGateways none" in result.stdout
    assert "has no mirror of public.ecr.aws, quay.io" in result.stdout
    assert "Traceback" not in result.stdout
