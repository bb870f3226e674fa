"""Helm's post-renderer leaves out what the API server calls, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import yaml

from karpstack.karpenter.callbacks import KINDS
from karpstack.rehearsal.cluster import callbacks

SCRIPT = Path(callbacks.__file__).with_name("without-callbacks")


def test_helm_is_left_what_is_not_called() -> None:
    called = [{"kind": kind, "metadata": {"name": "x"}, "spec": {"a": "---"}} for kind in sorted(KINDS)]
    kept = [
        {"kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 443}]}},
        {"kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"x": "kind: APIService"}},
    ]
    text = yaml.safe_dump_all([called[0], kept[0], *called[1:], kept[1]], explicit_start=True)
    done = subprocess.run([SCRIPT], input=f"# from a template\n{text}", capture_output=True, text=True, check=True)
    assert list(yaml.safe_load_all(done.stdout)) == [None, *kept]
