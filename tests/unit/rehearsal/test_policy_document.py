"""`aws.iam.getPolicyDocument` answers what the real provider documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.attachment.resource import RefusedError
from karpstack.rehearsal.aws.iam.policy_document import policy_document

EXAMPLES = yaml.safe_load(Path(__file__).with_name("policy_documents.yaml").read_text(encoding="utf-8"))


def resolved(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with the JSON of documents that are given by their parts."""
    return {
        name: [policy_document(one)["json"] for one in value] if name.endswith("PolicyDocuments") else value
        for name, value in given.items()
    }


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_document_is_the_providers(name: str) -> None:
    example = EXAMPLES[name]
    found = policy_document(resolved(example["given"]))
    if "json" in example:
        assert found["json"] == example["json"]
    else:
        assert json.loads(found["json"]) == {"Version": "2012-10-17", "Statement": example["statements"]}
    assert json.loads(found["minifiedJson"]) == json.loads(found["json"])
    assert " " not in found["minifiedJson"]
    assert found["id"].isdecimal()


def one(**statement: Any) -> dict[str, Any]:
    return {"statements": [{"actions": ["a:b"], "resources": ["*"], **statement}]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"statements": one(sid="Two")["statements"] * 2}, r"duplicate Sid \(Two\)"),
        ({"sourcePolicyDocuments": [policy_document(one(sid="Two"))["json"]] * 2}, r"source document 1: duplicate Sid"),
        ({"sourcePolicyDocuments": ["{"]}, "merging source document 0"),
        ({"overridePolicyDocuments": ["{}", '{"Statement": {}}']}, "merging override document 1"),
        ({"version": "2012-10-18"}, "expected version to be one of"),
        ({"version": "2008-10-17", **one(resources=["&{aws:username}"])}, "found &{ sequence"),
        (one(sid="not good"), "must only include alphanumeric characters"),
        (one(not_actions=["a:c"]), "a statement has no not_actions"),
        (one(effect="allow"), "expected effect to be one of"),
        ({"maxPolicySize": 6144}, "does not know the argument maxPolicySize"),
    ],
)
def test_what_the_provider_refuses_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        policy_document(given)
