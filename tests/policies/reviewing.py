"""Previews for tests of the review: recorded ones, and small ones made by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE
from reference import rules

from karpstack.review.assemble import assemble
from karpstack.review.model import Review
from karpstack.review.preview import Preview, recorded

UNKNOWN = UNKNOWN_STRING_VALUE
ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).resolve().parent / "previews"
RULES = rules()


def urn(token: str, name: str) -> str:
    return f"urn:pulumi:test::karpstack::{token}::{name}"


def step(
    token: str,
    name: str,
    inputs: Mapping[str, Any],
    op: str = "create",
    comes_from: Mapping[str, list[str]] | None = None,
) -> dict[str, Any]:
    state = {"type": token, "custom": True, "inputs": dict(inputs), "propertyDependencies": dict(comes_from or {})}
    return {"op": op, "urn": urn(token, name), "newState": state}


def violation(rule: str, found: str, about: str = "", level: str = "mandatory") -> str:
    """A line of the engine's event log."""
    (known,) = [one for one in RULES if one.name == rule]
    message = f"<{{%fg 13%}}>{known.description}\n{known.report_text(found)}<{{%reset%}}>\n"
    return event(policyName=rule, message=message, resourceUrn=about, enforcementLevel=level)


def event(**said: str) -> str:
    return json.dumps({"policyEvent": {"policyPackName": "karpstack", "policyPackVersion": "0.1.0", **said}})


def preview(*steps: Mapping[str, Any], events: list[str] | None = None, code: int = 0, **digest: Any) -> Preview:
    config = {"aws:region": "us-east-1"}
    return recorded(code, json.dumps({"config": config, "steps": steps, **digest}), events or [])


def review(
    said: Preview,
    stack: str = "test",
    configuration: Path = ROOT / "none.yaml",
    settings: Mapping[str, Any] | None = None,
) -> Review:
    return assemble(said, RULES, stack, configuration, configuration.name, settings or {}, "policies/production.json")


def recording(name: str) -> Any:
    """A recorded preview: its exit code, digest and events."""
    return json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))


def recorded_review(name: str, stack: str) -> Review:
    """The review of a real preview.

    `<name>.json.gz` has its exit code, its digest (`--json --show-sames`) and its policies' events (`--event-log`), of
    an example stack with nothing up, without what the review does not read: most outputs, and the configuration.
    """
    content = recording(name)
    said = recorded(content["code"], json.dumps(content["digest"]), [json.dumps(one) for one in content["events"]])
    settings = json.loads((ROOT / "policies" / f"{stack}.json").read_text())
    return review(said, stack, ROOT / f"Pulumi.{stack}.yaml", settings)
