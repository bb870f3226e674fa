"""The pack as a whole: each rule is proven and described."""

import json
import re
import runpy
from pathlib import Path

import jsonschema
import pulumi_aws as aws
import pulumi_azure_native as azure
import pulumi_kubernetes as kubernetes
import pytest
import reference
import tables
import test_rules_exception_rules
from judging import Case, Resource, judge
from rules import tokens
from rules.rule import ResourceRule, Rule

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


@pytest.mark.parametrize(
    ("token", "of"),
    [
        (tokens.ADDON, aws.eks.Addon),
        (tokens.AKS_CLUSTER, azure.containerservice.ManagedCluster),
        (tokens.AKS_AGENT_POOL, azure.containerservice.AgentPool),
        (tokens.AZURE_DIAGNOSTICS, azure.monitor.DiagnosticSetting),
        (tokens.AZURE_FEDERATED_CREDENTIAL, azure.managedidentity.FederatedIdentityCredential),
        (tokens.AZURE_IDENTITY, azure.managedidentity.UserAssignedIdentity),
        (tokens.AZURE_NETWORK, azure.network.VirtualNetwork),
        (tokens.AZURE_RESOURCE_GROUP, azure.resources.ResourceGroup),
        (tokens.AZURE_ROLE_ASSIGNMENT, azure.authorization.RoleAssignment),
        (tokens.AZURE_ROLE_DEFINITION, azure.authorization.RoleDefinition),
        (tokens.AZURE_SECURITY_GROUP, azure.network.NetworkSecurityGroup),
        (tokens.AZURE_SECURITY_RULE, azure.network.SecurityRule),
        (tokens.DEFAULT_SECURITY_GROUP, aws.ec2.DefaultSecurityGroup),
        (tokens.MANAGED_PREFIX_LIST, aws.ec2.ManagedPrefixList),
        (tokens.MANAGED_PREFIX_LIST_ENTRY, aws.ec2.ManagedPrefixListEntry),
        (tokens.EVENT_RULE, aws.cloudwatch.EventRule),
        (tokens.EVENT_TARGET, aws.cloudwatch.EventTarget),
        (tokens.QUEUE, aws.sqs.Queue),
        (tokens.QUEUE_POLICY, aws.sqs.QueuePolicy),
        (tokens.SECURITY_GROUP, aws.ec2.SecurityGroup),
        (tokens.SECURITY_GROUP_INGRESS_RULE, aws.vpc.SecurityGroupIngressRule),
        (tokens.SECURITY_GROUP_RULE, aws.ec2.SecurityGroupRule),
        (tokens.SUBNET, aws.ec2.Subnet),
        (tokens.TAG, aws.ec2.Tag),
        (tokens.VPC, aws.ec2.Vpc),
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
        (tokens.SERVICE, kubernetes.core.v1.Service),
        (tokens.DAEMON_SET, kubernetes.apps.v1.DaemonSet),
        (tokens.DEPLOYMENT, kubernetes.apps.v1.Deployment),
        (tokens.STATEFUL_SET, kubernetes.apps.v1.StatefulSet),
        (tokens.API_SERVICE, kubernetes.apiregistration.v1.APIService),
        (tokens.MUTATING_WEBHOOKS, kubernetes.admissionregistration.v1.MutatingWebhookConfiguration),
        (tokens.VALIDATING_WEBHOOKS, kubernetes.admissionregistration.v1.ValidatingWebhookConfiguration),
    ],
)
def test_token_is_the_class_s_own(token: str, of: type) -> None:
    assert token == of.pulumi_type  # type: ignore[attr-defined]  # set by the SDK's decorator


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


def test_a_class_that_the_sdk_lacks_stops_the_pack() -> None:
    with pytest.raises(LookupError, match="no class Clutser"):
        tokens.aws("eks", "Clutser")


def test_a_folder_that_cannot_be_linked_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    with pytest.raises(OSError, match="not supported"):
        link_pack(PACK, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()
