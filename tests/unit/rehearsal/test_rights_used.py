"""What production controllers were recorded to ask while scenarios ran, held against the documents of today.

`rights/eks.json` and `rights/aks-self-hosted.json` are such recordings. To record again, after a change that the
controller sees or with a new Karpenter:

    make soak STACK=eks
    karpstack rights eks --distil tests/unit/rehearsal/rights/eks.json

and the same for aks-self-hosted; then `make goldens` for docs/reference/rights.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from karpstack.components import aks
from karpstack.components.documents.iam import CONTROLLER_POLICIES, ControllerScope
from karpstack.components.naming import EksNames
from karpstack.rehearsal import recorded_rights
from karpstack.rehearsal.aws.iam import policies
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.recorded_rights import UNKNOWN, Cloud, Principal, Question, Recording
from karpstack.rehearsal.rights import reasons, review_output
from karpstack.rehearsal.rights.judging import Grant, judge, without_action
from karpstack.rehearsal.rights.review import Review, review
from tests.unit import example_stack
from tests.unit.mock_engine import deploy

FIXTURES = Path(__file__).parent / "rights"
PAGE = example_stack.ROOT / "docs" / "reference" / "rights.md"
REASONS = example_stack.ROOT / "components" / "documents" / "unused_rights.json"
NAMES = EksNames("karpstack-eks")
SCOPE = ControllerScope(
    partition="aws",
    region="us-east-1",
    account_id="123456789012",
    cluster_name="karpstack-eks",
    node_role_arn="arn:aws:iam::123456789012:role/karpstack-eks-karpenter-nodes",
    interruption_queue_arn="arn:aws:sqs:us-east-1:123456789012:karpstack-eks-interruption",
)
#: Statement IDs that upstream's template has not.
OURS = {
    "AllowSpotServiceLinkedRole": "an account's first spot instance needs it, and upstream has people make the role"
}
NEVER_ASKED = "AWS never checks this"
ASSIGNMENT = "azure-native:authorization:RoleAssignment"


def documents() -> dict[str, dict[str, Any]]:
    """The controller's policies as the components make them today."""
    return {NAMES.controller_policy(name): make(SCOPE) for name, make in CONTROLLER_POLICIES.items()}


@cache
def recorded() -> Principal:
    """What Karpenter asked on AWS, with today's documents."""
    (controller,) = recorded_rights.read([FIXTURES / "eks.json"]).principals
    return replace(controller, documents=documents())


@cache
def reviewed(cloud: Cloud) -> Review:
    known = reasons.read(REASONS, cloud)
    if cloud == "aws":
        return review(Recording("aws", [recorded()]), known)
    return review(recorded_rights.read([FIXTURES / "aks-self-hosted.json"]), known)


def fixture(name: str) -> Any:
    return json.loads((FIXTURES / name).read_text())


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_all_that_was_asked_is_allowed_and_all_that_was_not_has_its_reason(cloud: Cloud) -> None:
    assert reviewed(cloud).problems == []
    assert reviewed(cloud).notes == []


ACTIONS = sorted({use.question.action for use in recorded().uses})
USED = {grant.statement for grant, answered in judge("aws", recorded()).grants.items() if answered.calls}


@pytest.mark.parametrize("action", ACTIONS)
def test_without_an_action_that_was_used_the_controller_is_refused(action: str) -> None:
    less = {name: without_action(document, action) for name, document in documents().items()}
    refused = judge("aws", recorded(), less).refused
    assert {use.question.action for use in refused} == {action}


def test_without_a_statement_that_was_used_the_controller_is_refused() -> None:
    """Each has something that no other one allows."""
    for sid in USED:
        less = {
            name: {**one, "Statement": [statement for statement in one["Statement"] if statement["Sid"] != sid]}
            for name, one in documents().items()
        }
        assert judge("aws", recorded(), less).refused, sid


def test_without_a_resource_that_was_used_the_controller_is_refused() -> None:
    for grant, answered in judge("aws", recorded()).grants.items():
        if answered.calls:
            assert answered.alone == answered.calls, grant


@pytest.mark.parametrize(
    "statement",
    [pytest.param(one, id=one["Sid"]) for document in documents().values() for one in document["Statement"]],
)
def test_a_condition_that_asks_for_something_else_is_not_met(statement: Mapping[str, Any]) -> None:
    """Conditions that were met are not met by chance: held against another value, each refuses."""
    for operator, wanted in statement.get("Condition", {}).items():
        for key in wanted:
            narrowed = {**statement, "Condition": {**statement["Condition"], operator: {**wanted, key: ["another"]}}}
            less = _replaced(statement["Sid"], narrowed)
            # Karpenter does not send the key that is held to a value only where it is there.
            if statement["Sid"] in USED and not operator.endswith("IfExists"):
                assert judge("aws", recorded(), less).refused, f"{statement['Sid']}: {operator} {key}"


def _replaced(sid: str, statement: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        name: {**one, "Statement": [statement if part["Sid"] == sid else part for part in one["Statement"]]}
        for name, one in documents().items()
    }


def test_what_was_asked_is_what_aws_asks() -> None:
    """Each resource is of a type for which AWS's Service Authorization Reference lists the action."""
    known = fixture("service-authorization.json")["resourceTypes"]
    for use in recorded().uses:
        question = use.question
        assert question.resource != UNKNOWN
        kind = _kind(question.resource)
        assert kind in known[question.action] or not known[question.action], f"{question.action} on {kind}"


def test_reasons_that_aws_never_asks_are_true() -> None:
    """Held against the same reference."""
    known = fixture("service-authorization.json")["resourceTypes"]
    never = [grant for grant, reason in _unused() if reason.startswith(NEVER_ASKED)]
    assert never
    for grant in never:
        assert _kind(grant.resource) not in known[grant.action], grant
    for grant, reason in _unused():
        if not reason.startswith(NEVER_ASKED) and known[grant.action]:
            assert _kind(grant.resource) in [*known[grant.action], ""], grant


def _unused() -> Iterator[tuple[Grant, str]]:
    known = reasons.read(REASONS, "aws")
    for grant in judge("aws", recorded()).unused:
        yield grant, reasons.reason_for(grant, known)


def _kind(resource: str) -> str:
    """Type of the resource of an ARN, as the reference calls it; empty for `*`."""
    if resource == "*":
        return ""
    service, rest = resource.split(":")[2], resource.split(":", 5)[5]
    return "queue" if service == "sqs" else rest.partition("/")[0]


def test_upstream_grants_the_same() -> None:
    """Statement by statement, upstream's template for the pinned Karpenter with the example's values."""
    upstream = fixture("upstream-karpenter-1.14.json")["statements"]
    ours = {one["Sid"]: _facts(one) for document in documents().values() for one in document["Statement"]}
    assert {sid: facts for sid, facts in ours.items() if sid not in OURS} == upstream
    assert set(OURS) <= set(ours)


def _facts(statement: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "actions": _many(statement["Action"]),
        "resources": _many(statement["Resource"]),
        "conditions": {
            f"{operator} {key}": _many(values)
            for operator, wanted in statement.get("Condition", {}).items()
            for key, values in wanted.items()
        },
    }


def _many(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else sorted(value)


def variations(question: Question) -> dict[str, Question]:
    """A question as asked, without each of its condition keys, with another value of each, and about something else."""
    found = {"as asked": question, "elsewhere": replace(question, resource=_elsewhere(question.resource))}
    for key, value in question.context.items():
        rest = {other: one for other, one in question.context.items() if other != key}
        found[f"without {key}"] = replace(question, context=rest)
        found[f"another {key}"] = replace(
            question, context={**rest, key: "another" if isinstance(value, str) else ["another"]}
        )
    return found


def _elsewhere(arn: str) -> str:
    moved = arn.replace("us-east-1", "eu-west-1", 1)
    return moved if moved != arn else arn.replace("123456789012", "210987654321", 1)


def test_another_evaluator_says_the_same() -> None:
    """Verdicts of an independent evaluator of IAM over recorded questions and their variations, by the same documents.

    `rights/witness.json` names it. What it did not judge is no verdict: public parameters have no account in their ARN,
    which AWS's reference does not know.
    """
    witness = fixture("witness.json")
    for one in witness["questions"]:
        asked = variations(Question(one["action"], one["resource"], one["context"]))
        assert set(one["verdicts"]) == set(asked)
        for name, verdict in one["verdicts"].items():
            question = asked[name]
            ours = policies.decision(
                witness["documents"].values(), question.action, question.resource, question.context
            )
            assert verdict in (ours, "not judged"), f"{name}: {question}"


def test_the_roles_that_were_recorded_are_those_that_the_component_assigns() -> None:
    made = deploy(lambda: aks.Environment("aks", example_stack.aks("aks-self-hosted")))
    assigned = [one for one in made.of(ASSIGNMENT) if one.name.startswith("aks-karpenter-identity-roles-")]
    (controller,) = recorded_rights.read([FIXTURES / "aks-self-hosted.json"]).principals
    names = [roles.find(one.inputs["roleDefinitionId"]) for one in assigned]
    assert sorted(one.name for one in names if one) == sorted(one["role"] for one in controller.documents.values())
    assert len(names) == len(controller.documents)


HEAD = """\
# Permissions that the controller uses

<!-- Written by `make goldens` from tests/unit/rehearsal/rights; do not edit. -->

While scenarios ran, Karpenter's production controller caused permission checks. The tables compare these checks with
the permissions that the example environments grant, including resources and conditions.

- A *call* is one permission check. A request can need several: CreateFleet needs one for each resource, for tags and
  for the role that it passes.
- *Alone* counts the calls that no other permission allows. Without the permission they are refused; tests remove each
  permission to check this.

Commands:

    make soak                               # or any run: .rehearsal/<stack>/rights.json records the calls
    karpstack rights eks          # these tables; --format json or markdown; --recording FILE, for several runs

The command fails for a call without a permission, for an unused permission without a reason, and for a reason whose
permission does not exist. The reasons are in [unused_rights.json](../../components/documents/unused_rights.json).

The simulated AWS refuses requests by the same evaluation while it runs. Tests compare its checks for each request with
AWS's Service Authorization Reference of 2026-09-26, the policies with upstream's template for Karpenter 1.14, and the
evaluation with another evaluator of IAM.

Some permissions are used in a single scenario. So the command does not recommend removing a permission while the
recording is incomplete: during a run, or if scenarios of the soak are missing. It then names the missing ones. `run`
records the finished scenarios, and `--distil` keeps them; a scale test by hand is not recorded.

"""
SECTIONS: tuple[tuple[Cloud, str], ...] = (
    (
        "aws",
        "## EKS\n\nThe managed policies of the controller's role, with Karpenter 1.15.1: in a rehearsal of `eks` with "
        "all of its scenarios, and one of consolidation-policies alone.\n\n",
    ),
    (
        "azure",
        "## AKS, self-hosted\n\nThe roles of the controller's identity, with Karpenter 1.14.2: in rehearsals of "
        "`aks-self-hosted` with all of its scenarios.\n\n",
    ),
)


def test_the_page_shows_it(request: pytest.FixtureRequest) -> None:
    written = HEAD + "\n".join(head + review_output.markdown(reviewed(cloud)) for cloud, head in SECTIONS)
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written)
    assert PAGE.read_text() == written, f"{PAGE} differs; see --update-goldens"
