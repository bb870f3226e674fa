"""The review of previews, configurations and stack files that are broken somewhere: documents, or one sentence."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis.strategies import DataObject, data, sampled_from
from reviewing import ROOT, RULES, recording, review

from karpstack.review import configuration
from karpstack.review.engine import EngineError
from karpstack.review.model import Review
from karpstack.review.page import render as page
from karpstack.review.places import Places
from karpstack.review.preview import Preview, recorded
from tests.mutations import mutations, taken

PREVIEWS = ["eks-new", "aks-nap-new", "aks-self-hosted-new"]
MOST = 3_000  # characters of a refusal
SHORT = examples(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

recorded_preview = cache(recording)


def read(content: Any) -> Preview:
    return recorded(content["code"], json.dumps(content["digest"]), [json.dumps(one) for one in content["events"]])


def shown(said: Preview, **options: Any) -> Review:
    started = time.process_time()
    found = review(said, **options)
    assert all(one.isprintable() or one == "\n" for one in page(found))
    assert time.process_time() - started < 2
    return found


@pytest.mark.parametrize("name", PREVIEWS)
@SHORT
@given(draw=data())
def test_a_broken_preview(name: str, draw: DataObject) -> None:
    content = recorded_preview(name)
    digest = dict(content["digest"])
    steps = digest["steps"]
    index = draw.draw(sampled_from(range(len(steps))))
    digest["steps"] = [*steps[:index], draw.draw(mutations(steps[index])), *steps[index + 1 :]]
    if (said := taken(lambda: read({**content, "digest": digest, "code": 0}), EngineError, most=MOST)) is not None:
        shown(said)


@SHORT
@given(draw=data())
def test_a_broken_event_of_a_policy(draw: DataObject) -> None:
    content = recorded_preview("aks-nap-new")
    event = draw.draw(mutations(draw.draw(sampled_from(content["events"]))))
    if (said := taken(lambda: read({**content, "events": [event], "code": 0}), EngineError, most=MOST)) is not None:
        shown(said)


@SHORT
@given(mutations(json.loads((ROOT / "policies" / "eks.json").read_text())))
def test_a_broken_configuration_of_the_pack(tmp_path_factory: pytest.TempPathFactory, settings: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "pack.json"
    path.write_text(json.dumps(settings))
    content = taken(lambda: configuration.read(path, RULES), ValueError)
    if content is not None:
        shown(read(recorded_preview("eks-new")), settings=content)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        b"config: " + b"[" * 100_000,
        b"config:\n  a: &a [x]\n" + b"".join(b"  b%d: &b%d [*a, *a]\n" % (one, one) for one in range(100)),
        b"config: {" + b"x: y, " * 200_000 + b"}",
        b"config: *none",
        b"? [a]\n: b\nconfig: {? {a: b} : c}",
        b"\x00",
    ],
    ids=["no text", "deep", "aliases", "long", "no anchor", "keys that are lists", "zero"],
)
def test_a_stack_file_that_can_not_be_read_has_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.test.yaml"
    path.write_bytes(content)
    started = time.process_time()
    assert Places(path, "karpstack", path.name).of(None, "tags-required").line == 1
    assert time.process_time() - started < 1


@SHORT
@given(mutations(yaml.safe_load((ROOT / "Pulumi.eks.yaml").read_text())))
def test_a_broken_stack_file_has_lines_all_the_same(tmp_path_factory: pytest.TempPathFactory, stack: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "Pulumi.test.yaml"
    path.write_bytes(yaml.safe_dump(stack).encode(errors="replace"))
    assert Places(path, "karpstack", path.name).of(None, "tags-required").line >= 1
