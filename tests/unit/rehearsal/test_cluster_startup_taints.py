"""Startup taints that nobody lifts in a rehearsal; who lifts the others is in players.yaml."""

from __future__ import annotations

from typing import Any

from karpstack.rehearsal.cluster.startup_taints import permanent_taints


def pool(*keys: Any) -> dict[str, Any]:
    return {"template": {"spec": {"startupTaints": [{"key": key, "effect": "NoExecute"} for key in keys]}}}


def test_what_nobody_lifts_is_said() -> None:
    lifted = pool(*(f"{name}/agent-not-ready" for name in ("node.cilium.io", "ebs.csi.aws.com", "efs.csi.aws.com")))
    assert list(permanent_taints({"a": lifted, "b": {}})) == []
    (said,) = permanent_taints({"a": pool("ebs.csi.aws.com/agent-not-ready", "example.com/not-yet")})
    assert said.startswith("NodePool a: nobody lifts its startup taint example.com/not-yet in a rehearsal")
    # What is of another shape, the program's settings refuse.
    shapes = {"a": [], "b": pool(5), "c": {"template": {"spec": {"startupTaints": ["x"]}}}}
    assert list(permanent_taints({**shapes, "d": {"template": {"spec": {"startupTaints": 5}}}})) == []
