"""The pack as a whole: each rule is proven and described, and the pack starts as the engine starts it."""

import importlib
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
import pytest
from google.protobuf import empty_pb2, struct_pb2
from judging import Case, Resource, judge
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc
from pulumi_policy import EnforcementLevel
from rules import tokens
from rules.rule import ResourceRule, Rule

HERE = Path(__file__).resolve().parent
PACK = HERE.parents[1] / "policies"
RULES: list[Rule] = runpy.run_path(str(PACK), run_name="pack")["RULES"]
CASES: list[Case] = [
    case for path in sorted(HERE.glob("test_rules_*.py")) for case in importlib.import_module(path.stem).CASES
]

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def cases_of(rule: Rule) -> list[Case]:
    return [case for case in CASES if case.rule.name == rule.name]


@every_rule
def test_is_seen_passing_firing_and_meeting_an_unknown_value(rule: Rule) -> None:
    verdicts = [judge(case.rule, case.given, case.settings) for case in cases_of(rule)]
    assert any(not verdict.violations and verdict.unknown is None for verdict in verdicts), "never seen passing"
    assert any(verdict.violations for verdict in verdicts), "never seen firing"
    assert any(verdict.unknown for verdict in verdicts), "never seen meeting an unknown value"


@every_rule
def test_fires_for_each_token(rule: Rule) -> None:
    if not isinstance(rule, ResourceRule):
        pytest.skip("a stack rule has no tokens of its own")
    fired = {
        case.given.token
        for case in cases_of(rule)
        if isinstance(case.given, Resource) and judge(case.rule, case.given, case.settings).violations
    }
    assert fired == set(rule.checks)


@every_rule
def test_each_setting_is_tried(rule: Rule) -> None:
    assert {name for case in cases_of(rule) for name in case.settings} == set(rule.settings)


def test_every_case_belongs_to_a_rule_in_force() -> None:
    assert {case.rule.name for case in CASES} == {rule.name for rule in RULES}


def test_names_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@every_rule
def test_says_what_why_and_how(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    for text in (rule.description, rule.rationale, rule.consequence, rule.remediation):
        assert text.endswith(".")
    assert rule.url.startswith("https://")
    assert rule.enforcement is EnforcementLevel.MANDATORY
    assert all("default" in schema and "type" in schema for schema in rule.settings.values())
    assert f"`{rule.name}`" in (PACK / "README.md").read_text()


@every_rule
def test_refuses_an_unknown_setting(rule: Rule) -> None:
    case = cases_of(rule)[0]
    with pytest.raises(ValueError, match=f"{rule.name} has no setting colour"):
        judge(rule, case.given, {"colour": "green"})


@pytest.mark.parametrize(
    ("token", "of"),
    [
        (tokens.CLUSTER, aws.eks.Cluster),
        (tokens.NODE_GROUP, aws.eks.NodeGroup),
        (tokens.LAUNCH_TEMPLATE, aws.ec2.LaunchTemplate),
        (tokens.IAM_POLICY, aws.iam.Policy),
        (tokens.IAM_GROUP_POLICY, aws.iam.GroupPolicy),
        (tokens.IAM_ROLE, aws.iam.Role),
        (tokens.IAM_ROLE_POLICY, aws.iam.RolePolicy),
        (tokens.IAM_USER_POLICY, aws.iam.UserPolicy),
        (tokens.IAM_POLICY_ATTACHMENT, aws.iam.PolicyAttachment),
        (tokens.IAM_GROUP_POLICY_ATTACHMENT, aws.iam.GroupPolicyAttachment),
        (tokens.IAM_ROLE_POLICY_ATTACHMENT, aws.iam.RolePolicyAttachment),
        (tokens.IAM_USER_POLICY_ATTACHMENT, aws.iam.UserPolicyAttachment),
        (tokens.HELM_RELEASE, kubernetes.helm.v3.Release),
    ],
)
def test_token_is_the_class_s_own(token: str, of: type) -> None:
    assert token == of.pulumi_type  # type: ignore[attr-defined]  # set by the SDK's decorator


def test_a_class_that_the_sdk_lacks_stops_the_pack() -> None:
    with pytest.raises(LookupError, match="no class Clutser"):
        tokens._aws("eks", "Clutser")


@pytest.fixture
def analyzer() -> Iterator[analyzer_pb2_grpc.AnalyzerStub]:
    """The pack in a process of its own, started as a language host does it."""
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:0", str(PACK)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel)
        finally:
            process.kill()


def test_starts_as_the_engine_starts_it(analyzer: analyzer_pb2_grpc.AnalyzerStub) -> None:
    info = analyzer.GetAnalyzerInfo(empty_pb2.Empty())
    assert [policy.name for policy in info.policies] == [rule.name for rule in RULES]

    properties = struct_pb2.Struct()
    properties.update({"spec": {"limits": {"cpu": "100"}}})
    request = analyzer_pb2.AnalyzeRequest(type=tokens.NODE_POOL, name="pool", properties=properties)
    answer = analyzer.Analyze(request)
    (diagnostic,) = answer.diagnostics
    assert diagnostic.policyName == "node-pool-cilium-startup-taint"
    assert diagnostic.enforcementLevel == analyzer_pb2.MANDATORY
