"""The script that nodes of Amazon Linux 2023 run at their start, run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from karpstack.components.documents.proxy import Egress
from karpstack.components.documents.user_data import al2023
from tests.unit.made_certificates import certificate


def test_the_script_writes_what_update_ca_trust_and_containerd_read(tmp_path: Path) -> None:
    authorities = [certificate("One"), certificate("Other")]
    made = al2023(Egress(certificates=authorities, mirrors={"registry.corp:5000": "mirror.example.com/x"}))
    script = made.partition("#!/bin/bash")[2].partition("\n--karpstack")[0]
    machine, programs = tmp_path / "machine", tmp_path / "bin"
    anchors = machine / "etc/pki/ca-trust/source/anchors"
    anchors.mkdir(parents=True)
    programs.mkdir()
    update = programs / "update-ca-trust"
    update.write_text(f"#!/bin/sh\ncat {anchors}/*.pem > {tmp_path}/trusted\n")
    update.chmod(0o755)
    subprocess.run(
        ["bash"],
        input=script.replace("/etc/", f"{machine}/etc/"),
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
        text=True,
        check=True,
        timeout=60,
    )
    trusted = (tmp_path / "trusted").read_text()
    assert all(one in trusted for one in authorities)
    (hosts,) = (machine / "etc/containerd/certs.d").glob("*/hosts.toml")
    assert hosts.parent.name == "registry.corp:5000"
    assert '[host."https://mirror.example.com/v2/x"]' in hosts.read_text()
