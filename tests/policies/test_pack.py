"""The pack as a whole: each rule is proven and described."""

import json
import re
import runpy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pulumi_aws  # noqa: F401  importing it registers its classes
import pulumi_azure_native  # noqa: F401
import pulumi_kubernetes  # noqa: F401
import pytest
import reference
import tables
import test_rules_exception_rules
from judging import Case, Resource, judge
from pulumi.runtime.rpc import get_resource_module
from rules import tokens
from rules.rule import ResourceRule, Rule

from karpstack.review.permissions.aws import ACCESS_ENTRY, ACCESS_POLICY, POD_IDENTITY
from karpstack.review.preview import link_pack

HERE = Path(__file__).resolve().parent
PACK = HERE.parents[1] / "policies"
RULES: list[Rule] = runpy.run_path(str(PACK), run_name="pack")["RULES"]
CASES: list[Case] = [
    *test_rules_exception_rules.CASES,
    *tables.load({rule.name: rule for rule in RULES}),
]

GROUPS = ["identity", "network", "node pools", "node classes", "controller", "data", "stack", "exceptions"]

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def cases_of(rule: Rule) -> list[Case]:
    return [case for case in CASES if case.rule.name == rule.name]


@every_rule
def test_is_seen_passing_firing_and_meeting_an_unknown_value(rule: Rule) -> None:
    verdicts = [case.verdict() for case in cases_of(rule)]
    assert any(not verdict.violations and verdict.unknown is None for verdict in verdicts), "never seen passing"
    assert any(verdict.violations for verdict in verdicts), "never seen firing"
    if rule.group != "exceptions":  # those read no values of resources
        assert any(verdict.unknown for verdict in verdicts), "never seen meeting an unknown value"


@every_rule
def test_fires_for_each_token(rule: Rule) -> None:
    if not isinstance(rule, ResourceRule):
        pytest.skip("a stack rule has no tokens of its own")
    fired = {
        case.given.token for case in cases_of(rule) if isinstance(case.given, Resource) and case.verdict().violations
    }
    assert set(map(tokens.plain, fired)) == set(rule.checks)


@every_rule
def test_each_setting_is_tried(rule: Rule) -> None:
    assert {name for case in cases_of(rule) for name in case.settings} == set(rule.settings)


def test_every_case_belongs_to_a_rule_in_force() -> None:
    assert {case.rule.name for case in CASES} == {rule.name for rule in RULES}


def test_document_and_configurations_are_current() -> None:
    for path, content in reference.written().items():
        assert path.read_text() == content, f"{path.name} is not what the rules say; run: make goldens"


@pytest.mark.parametrize("path", reference.CONFIGURATIONS, ids=lambda path: path.name)
def test_configurations_fit_the_rules(path: Path) -> None:
    known = {rule.name: rule for rule in RULES}
    for name, settings in json.loads(path.read_text()).items():
        settings.pop("enforcementLevel", None)
        assert set(settings) <= set(known[name].settings), name
        for setting, value in settings.items():
            jsonschema.validate(value, known[name].settings[setting])


def test_configurations_differ_in_exceptions_only() -> None:
    production, *examples = (json.loads(path.read_text()) for path in reference.CONFIGURATIONS)
    for example in examples:
        example.pop("exceptions")
        assert example == production


@every_rule
def test_settings_fit_their_own_schemas(rule: Rule) -> None:
    for name, schema in rule.settings.items():
        jsonschema.Draft7Validator.check_schema(schema)
        jsonschema.validate(schema["default"], schema)
        if name in rule.production:
            jsonschema.validate(rule.production[name], schema)


@every_rule
def test_production_is_no_laxer_than_the_baseline(rule: Rule) -> None:
    strictness = ["disabled", "advisory", "mandatory"]
    levels = [strictness.index(rule.enforcement[name].value) for name in ("baseline", "production")]
    assert levels == sorted(levels)


def test_names_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)


@every_rule
def test_says_what_why_and_how(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    for text in (rule.description, rule.rationale, rule.consequence, rule.remediation):
        assert text.endswith(".")
    assert rule.url.startswith("https://")
    assert rule.group in GROUPS
    assert set(rule.enforcement) == {"baseline", "production"}
    assert set(rule.production) <= set(rule.settings)
    assert all("default" in schema and "type" in schema for schema in rule.settings.values())


@every_rule
def test_refuses_an_unknown_setting(rule: Rule) -> None:
    case = cases_of(rule)[0]
    with pytest.raises(ValueError, match=f"{rule.name} has no setting colour"):
        judge(rule, case.given, {"colour": "green"})


@pytest.mark.parametrize("token", [*tokens.all_of_them(), POD_IDENTITY, ACCESS_ENTRY, ACCESS_POLICY])
def test_a_token_is_one_of_a_class_of_the_sdk(token: str) -> None:
    package, module, _ = token.split(":")
    if "karpenter" in module or package == "karpstack":
        pytest.skip("no SDK has it")
    registered: Any = get_resource_module(package, module, "")
    assert token in registered.mod_info["classes"]


def test_karpenters_documented_controller_policy_passes() -> None:
    documented = json.loads((PACK.parent / "tests/unit/rehearsal/rights/upstream-karpenter-1.14.json").read_text())
    statements = []
    for sid, said in documented["statements"].items():
        condition: dict[str, dict[str, list[str]]] = {}
        for test, values in said["conditions"].items():
            operator, key = test.split(" ", 1)
            condition.setdefault(operator, {})[key] = values
        statement = {"Sid": sid, "Effect": "Allow", "Action": said["actions"], "Resource": said["resources"]}
        statements.append({**statement, "Condition": condition})
    policy = Resource(tokens.IAM_POLICY, {"policy": json.dumps({"Statement": statements})})
    found = [judge(rule, policy).violations for rule in RULES if rule.name.startswith("iam-")]
    assert not any(found), found


def test_the_reference_lists_each_type_that_a_rule_reads() -> None:
    judged = {token for rule in RULES if isinstance(rule, ResourceRule) for token in rule.checks}
    assert judged - {tokens.STACK} <= set(tokens.all_of_them())


def without(case: Case, unread: Callable[[str], bool]) -> Case:
    """The case without the resources of some types."""
    assert isinstance(case.given, list)
    left = [each for each in case.given if not unread(tokens.plain(each.token))]
    names = {each.name for each in left}
    given = [
        replace(
            each, comes_from={key: tuple(name for name in of if name in names) for key, of in each.comes_from.items()}
        )
        for each in left
    ]
    return replace(case, given=given)


@every_rule
def test_a_stack_rule_reads_the_types_that_the_reference_says(rule: Rule) -> None:
    if isinstance(rule, ResourceRule) or rule.group == "exceptions":
        pytest.skip("it judges one resource, or is about any")
    types = reference.types_read(rule)
    for case in cases_of(rule):
        assert without(case, lambda token: token not in types).verdict() == case.verdict(), case
    for read in types:
        changed = [without(case, read.__eq__).verdict() != case.verdict() for case in cases_of(rule)]
        assert any(changed), f"{read} makes no difference"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("azure-native:authorization/v20220401:RoleAssignment", tokens.AZURE_ROLE_ASSIGNMENT),
        ("azure-native_containerservice_v20240901preview:containerservice:ManagedCluster", tokens.AKS_CLUSTER),
        ("kubernetes:karpenter.azure.com/v1:AKSNodeClass", tokens.AKS_NODE_CLASS),
        ("kubernetes:karpenter.k8s.aws/v1beta1:EC2NodeClassPatch", f"{tokens.EC2_NODE_CLASS}Patch"),
        ("kubernetes:apps/v1:Deployment", tokens.DEPLOYMENT),
        ("azure-native:network:loadBalancers/v1:Other", "azure-native:network:loadBalancers/v1:Other"),
    ],
)
def test_the_version_of_an_api_is_no_part_of_a_type(token: str, expected: str) -> None:
    assert tokens.plain(token) == expected


def test_a_folder_that_cannot_be_linked_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(OSError, match="not supported"):
        link_pack(PACK, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()
