"""components.settings: what it takes, and each refusal with key, value, consequence and fix."""

from __future__ import annotations

import json
from contextvars import ContextVar
from ipaddress import IPv4Network
from typing import Any

import pytest
from pulumi.runtime import config as runtime_config

from components import settings, versions
from components.problems import Problem, SettingsError
from tests.unit.example_stack import eks, example

CLASS = {"amiSelectorTerms": [{"alias": "al2023@latest"}]}


def pool(*, capacity: dict[str, Any] | None = None, reference: dict[str, Any] | None = None) -> dict[str, Any]:
    node: dict[str, Any] = {"requirements": [{"key": "karpenter.sh/capacity-type", **capacity}] if capacity else []}
    return {"template": {"spec": {**node, **({"nodeClassRef": reference} if reference else {})}}}


def problems(raw: dict[str, str], **options: Any) -> list[Problem]:
    with pytest.raises(SettingsError) as caught:
        settings.load(raw, **options)
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return list(caught.value.problems)


def test_the_example_is_taken() -> None:
    loaded = eks()
    assert loaded.network.pod_cidr == IPv4Network("10.244.0.0/16")
    assert loaded.cluster.version == "1.36"
    assert loaded.node_pools["default"]["limits"] == {"cpu": 1000, "memory": "4000Gi"}


def test_defaults_are_the_safe_ones() -> None:
    loaded = eks(cluster={"version": "1.36"}, karpenter=None, systemNodes=None, tags=None)
    assert loaded.cluster.public_access_cidrs == []
    assert loaded.karpenter.identity == "pod-identity"
    assert loaded.karpenter.interruption_queue
    assert len(loaded.cluster.log_types) == 5


#: What is changed, then the problem that must come of it: key, value, and parts of consequence and fix.
REFUSALS: dict[str, tuple[dict[str, Any], str, str, str, str]] = {
    "unknown key": ({"netwrok": {}}, "karpstack:netwrok", "{}", "is not a setting", "did you mean network?"),
    "unknown key in a section": (
        {"network__podCIDR": "10.1.0.0/16"},
        "karpstack:network.podCIDR",
        '"10.1.0.0/16"',
        "is not a setting",
        "did you mean podCidr?",
    ),
    "missing key": (
        {"nodeClasses": None},
        "karpstack:nodeClasses",
        "(not set)",
        "is required",
        "EC2NodeClass specs by name",
    ),
    "the spot role of earlier versions": (
        {"spotServiceLinkedRole": "create"},
        "karpstack:spotServiceLinkedRole",
        '"create"',
        "is no setting any more",
        "stays in the account",
    ),
    "keys that kubectl cannot have": (
        {"aws:accessKey": "AKIA"},
        "aws:accessKey",
        '"AKIA"',
        "reaches the AWS provider and not `aws eks get-token`",
        "name a profile in aws:profile",
    ),
    "a role that kubectl cannot take": (
        {"aws:assumeRoles": [{"roleArn": "arn:a", "externalId": "1"}]},
        "aws:assumeRoles[0].externalId",
        '"1"',
        "cannot be handed to `aws eks get-token`",
        "say it in a profile",
    ),
    "a chain of roles": (
        {"aws:assumeRoles": [{"roleArn": "arn:a"}, {"roleArn": "arn:b"}]},
        "aws:assumeRoles",
        '[{"roleArn": "arn:a"}, {"roleArn": "arn:b"}]',
        "is a chain of roles",
        "source_profile",
    ),
    "an add-on that is not there": (
        {"cluster__addonVersions": {"vpc-cni": "v1"}},
        "karpstack:cluster.addonVersions.vpc-cni",
        '"vpc-cni"',
        "cannot be used",
        "by name",
    ),
    "wrong choice": (
        {"karpenter__identity": "kiam"},
        "karpstack:karpenter.identity",
        '"kiam"',
        "cannot be used",
        "pod-identity or irsa",
    ),
    "no object": (
        {"network": "10.0.0.0/16"},
        "karpstack:network",
        '"10.0.0.0/16"',
        "cannot be used",
        "address ranges and zones",
    ),
    "pods overlap the VPC": (
        {"network__podCidr": "10.0.128.0/17"},
        "karpstack:network.podCidr",
        '"10.0.128.0/17"',
        "overlaps vpcCidr 10.0.0.0/16",
        "outside 10.0.0.0/16",
    ),
    "services overlap the VPC": (
        {"network__serviceCidr": "10.0.64.0/18"},
        "karpstack:network.serviceCidr",
        '"10.0.64.0/18"',
        "overlaps vpcCidr 10.0.0.0/16",
        "outside 10.0.0.0/16",
    ),
    "services overlap the pods": (
        {"network__serviceCidr": "10.244.0.0/20"},
        "karpstack:network.serviceCidr",
        '"10.244.0.0/20"',
        "overlaps podCidr 10.244.0.0/16",
        "outside 10.244.0.0/16",
    ),
    "no range": (
        {"network__podCidr": "10.244.0.0"},
        "karpstack:network.podCidr",
        '"10.244.0.0"',
        "is not an IPv4 range",
        "address/prefix",
    ),
    "host bits": (
        {"network__podCidr": "10.244.0.1/16"},
        "karpstack:network.podCidr",
        '"10.244.0.1/16"',
        "has bits beyond its prefix",
        "write 10.244.0.0/16",
    ),
    "IPv6": (
        {"network__podCidr": "fd00::/104"},
        "karpstack:network.podCidr",
        '"fd00::/104"',
        "is an IPv6 range",
        "use an IPv4 range",
    ),
    "VPC too small for its subnets": (
        {"network__vpcCidr": "10.0.0.0/23"},
        "karpstack:network.vpcCidr",
        '"10.0.0.0/23"',
        "subnets do not fit",
        "from /16 to /22",
    ),
    "service range that EKS refuses": (
        {"network__serviceCidr": "100.64.0.0/16"},
        "karpstack:network.serviceCidr",
        '"100.64.0.0/16"',
        "is refused by EKS",
        "inside 10.0.0.0/8",
    ),
    "one zone": (
        {"network__zones": 1},
        "karpstack:network.zones",
        "1",
        "EKS needs subnets in two zones",
        "choose 2 to 6",
    ),
    "zone twice": (
        {"network__zones": ["us-east-1a", "us-east-1a"]},
        "karpstack:network.zones",
        '["us-east-1a", "us-east-1a"]',
        "names a zone twice",
        "name each zone once",
    ),
    "zone of another region": (
        {"network__zones": ["us-east-1a", "eu-west-1a"]},
        "karpstack:network.zones[1]",
        '"eu-west-1a"',
        "is no zone of the region us-east-1",
        "did you mean us-east-1a?",
    ),
    "zones in words": (
        {"network__zones": "three"},
        "karpstack:network.zones",
        '"three"',
        "is neither a number nor a list",
        "choose 2 to 6",
    ),
    "one share takes all": (
        {"network__podCidrMaskSize": 16},
        "karpstack:network.podCidrMaskSize",
        "16",
        "leaves room for no second node",
        "larger podCidr",
    ),
    "shares of four addresses": (
        {"network__podCidrMaskSize": 30},
        "karpstack:network.podCidrMaskSize",
        "30",
        "far fewer",
        "choose 16 to 28",
    ),
    "fewer shares than nodes": (
        {"network__podCidr": "10.244.0.0/21"},
        "karpstack:network.podCidr",
        '"10.244.0.0/21"',
        "has room for 8 nodes",
        "larger podCidr",
    ),
    "version too new": (
        {"cluster__version": "1.38"},
        "karpstack:cluster.version",
        '"1.38"',
        f"is not a version that Karpenter {versions.KARPENTER_AWS}",
        "choose 1.3",
    ),
    "version too new for the release of Karpenter that is asked for": (
        {"cluster__version": "1.37", "karpenter__chartVersion": "1.14.3"},
        "karpstack:cluster.version",
        '"1.37"',
        "is not a version that Karpenter 1.14.3",
        "choose 1.3",
    ),
    "a chart from before its values are known": (
        {"karpenter__chartVersion": "1.12.2"},
        "karpstack:karpenter.chartVersion",
        '"1.12.2"',
        "so old",
        "1.13.0 or newer",
    ),
    "a feature gate that the chart does not know yet": (
        {"karpenter__chartVersion": "1.13.1", "karpenter__featureGates": {"capacityBuffer": True}},
        "karpstack:karpenter.featureGates",
        '{"capacityBuffer": true}',
        "switches capacityBuffer on: the chart 1.13.1 does not know it",
        versions.KARPENTER_AWS,
    ),
    "a setting that the chart does not know yet": (
        {"karpenter__chartVersion": "1.14.3", "karpenter__settings": {"legacyNodeRepair": True}},
        "karpstack:karpenter.settings",
        '{"legacyNodeRepair": true}',
        "the chart 1.14.3 does not know it",
        "batchIdleDuration",
    ),
    "version too old": (
        {"cluster__version": "1.25"},
        "karpstack:cluster.version",
        '"1.25"',
        "its controller would stop",
        "choose 1.3",
    ),
    "version without quotes": (
        {"cluster__version": 1.3},
        "karpstack:cluster.version",
        "1.3",
        "YAML reads 1.30 as 1.3",
        "in quotes",
    ),
    "version with a patch": (
        {"cluster__version": "1.36.3"},
        "karpstack:cluster.version",
        '"1.36.3"',
        "EKS chooses the patch",
        '"1.36"',
    ),
    "open to the world": (
        {"cluster__publicAccessCidrs": ["1.1.1.0/24", "0.0.0.0/0"]},
        "karpstack:cluster.publicAccessCidrs[1]",
        '"0.0.0.0/0"',
        "to the whole internet",
        "closes the public endpoint",
    ),
    "administrator by session": (
        {"cluster__admins": ["arn:aws:sts::123456789012:assumed-role/admin/me"]},
        "karpstack:cluster.admins[0]",
        '"arn:aws:sts::123456789012:assumed-role/admin/me"',
        "is not the ARN of an IAM role",
        ":role/<name>",
    ),
    "administrator twice": (
        {"cluster__admins": ["arn:aws:iam::123456789012:role/a"] * 2},
        "karpstack:cluster.admins",
        '["arn:aws:iam::123456789012:role/a", "arn:aws:iam::123456789012:role/a"]',
        "EKS refuses a second access entry",
        "name each once",
    ),
    "sizes out of order": (
        {"systemNodes__maxSize": 1},
        "karpstack:systemNodes.maxSize",
        "1",
        "EKS refuses the node group",
        "minSize <= desiredSize <= maxSize",
    ),
    "more controllers than nodes": (
        {"karpenter__replicas": 3},
        "karpstack:karpenter.replicas",
        "3",
        "two controllers never share a node",
        "raise desiredSize",
    ),
    "a setting that the chart does not know": (
        {"karpenter__settings": {"batchIdleDuraton": "1s"}},
        "karpstack:karpenter.settings",
        '{"batchIdleDuraton": "1s"}',
        "Helm would ignore it",
        "batchIdleDuration",
    ),
    "a setting that is the environment's": (
        {"karpenter__settings": {"clusterName": "x"}},
        "karpstack:karpenter.settings",
        '{"clusterName": "x"}',
        "follows from the environment",
        "use only",
    ),
    "a feature gate that is none": (
        {"karpenter__featureGates": {"drift": True}},
        "karpstack:karpenter.featureGates.drift",
        "true",
        "is not a setting",
        "known here: capacityBuffer",
    ),
    "a tag with a meaning": (
        {"tags": {"karpenter.sh/discovery": "x"}},
        'karpstack:tags["karpenter.sh/discovery"]',
        '"karpenter.sh/discovery"',
        "offer public subnets to Karpenter",
        "does not begin with",
    ),
    "a tag that is a number": (
        {"tags": {"cost-centre": 0}},
        "karpstack:tags.cost-centre",
        "0",
        "should be a valid string",
        "put it in quotes, '0'",
    ),
    "name too long": (
        {"name": "n" * 44},
        "karpstack:name",
        f'"{"n" * 44}"',
        "has 65 characters of 64",
        "at most 43 characters",
    ),
    "name with capitals": (
        {"name": "Karpstack"},
        "karpstack:name",
        '"Karpstack"',
        "cannot name a cluster",
        "lower-case",
    ),
    "a whole manifest": (
        {"nodePools__x": {"kind": "NodePool", "spec": {}}},
        "karpstack:nodePools.x",
        '{"kind": "NodePool", "spec": {}}',
        "is a whole manifest (it holds kind, spec)",
        "move the contents",
    ),
    "a NodePool that Kubernetes cannot name": (
        {"nodePools__My_Pool": {}},
        "karpstack:nodePools.My_Pool",
        '"My_Pool"',
        "is no name that Kubernetes takes",
        "63 lower-case letters",
    ),
    "a node class that is not there": (
        {"nodePools__default": pool(reference={"name": "gpu"})},
        "karpstack:nodePools.default.template.spec.nodeClassRef.name",
        '"gpu"',
        "names no node class of this stack",
        "bottlerocket, default",
    ),
    "no node class named default": (
        {"nodeClasses": {"gpu": CLASS}},
        "karpstack:nodePools.default.template.spec.nodeClassRef.name",
        "(not set)",
        "(not set means default)",
        "choose one of karpstack:nodeClasses: gpu",
    ),
    "a node class of another cloud": (
        {"nodePools__default": pool(reference={"kind": "AKSNodeClass"})},
        "karpstack:nodePools.default.template.spec.nodeClassRef.kind",
        '"AKSNodeClass"',
        "is not this cloud's",
        "write EC2NodeClass",
    ),
    "spot without a queue": (
        {
            "karpenter__interruptionQueue": False,
            "nodePools__default": pool(capacity={"operator": "In", "values": ["spot"]}),
        },
        "karpstack:nodePools.default.template.spec.requirements",
        '[{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]',
        "allows spot instances while karpenter.interruptionQueue is false",
        "interruptionQueue to true",
    ),
    "spot by omission without a queue": (
        {"karpenter__interruptionQueue": False, "nodePools__default": pool()},
        "karpstack:nodePools.default.template.spec.requirements",
        "[]",
        "allows spot instances",
        "In [on-demand]",
    ),
    "a field that Karpenter does not know": (
        {"nodePools__default": {"disruption": {"consolidateAfter": "1m", "budget": []}}},
        "karpstack:nodePools.default.disruption.budget",
        "[]",
        "is no field here; there are budgets, consolidateAfter, consolidationPolicy: the API server refuses the "
        "NodePool, after all the rest was created",
        "karpenter.sh/docs/concepts/nodepools",
    ),
    "a NodePool that breaks a rule of Karpenter's": (
        {"nodePools__default": {**pool(), "replicas": 2, "weight": 3}},
        "karpstack:nodePools.default",
        "an object with disruption, template, replicas, weight",
        "'weight' is not supported on static NodePools",
        "karpenter.sh/docs/concepts/nodepools",
    ),
    "a node class that breaks a rule of Karpenter's": (
        {"nodeClasses__default__amiSelectorTerms": [{"alias": "al2023"}]},
        "karpstack:nodeClasses.default.amiSelectorTerms[0].alias",
        '"al2023"',
        "'alias' is improperly formatted",
        "karpenter.sh/docs/concepts/nodeclasses",
    ),
    "a role of its own": (
        {"nodeClasses__default__role": "mine"},
        "karpstack:nodeClasses.default.role",
        '"mine"',
        "is set by the environment",
        "remove it",
    ),
    "no image": (
        {"nodeClasses__default": {}},
        "karpstack:nodeClasses.default.amiSelectorTerms",
        "(not set)",
        "the API server refuses the node class",
        "al2023@",
    ),
    "more pods than addresses": (
        {"nodeClasses__default__kubelet__maxPods": 253},
        "karpstack:nodeClasses.default.kubelet.maxPods",
        "253",
        "more than the 252 pod addresses",
        "at most 252",
    ),
    "more default pods than addresses": (
        {"network__podCidrMaskSize": 26, "nodeClasses": {"default": CLASS}},
        "karpstack:nodeClasses.default.kubelet.maxPods",
        "110",
        "more than the 60 pod addresses",
        "at most 60",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused(case: str) -> None:
    changes, key, value, consequence, fix = REFUSALS[case]
    (problem,) = problems(example(**changes))
    assert problem.key == key
    assert problem.value == value
    assert consequence in problem.consequence
    assert fix in problem.fix


def test_region_is_required() -> None:
    raw = example()
    del raw["aws:region"]
    (problem,) = problems(raw)
    assert (problem.key, problem.value) == ("aws:region", "(not set)")


def test_on_demand_needs_no_queue() -> None:
    for capacity in ({"operator": "In", "values": ["on-demand"]}, {"operator": "NotIn", "values": ["spot"]}):
        settings.load(example(karpenter__interruptionQueue=False, nodePools__default=pool(capacity=capacity)))


def test_several_errors_come_at_once() -> None:
    found = problems(
        example(
            name="Bad_Name",
            network__podCidr="10.0.0.0/17",
            network__zones=9,
            cluster__version="1.99",
            karpenter__replicas=5,
            nodePools__default=pool(reference={"name": "gpu"}),
            unknown={},
        )
    )
    assert [problem.key for problem in found] == [
        "karpstack:name",
        "karpstack:network.podCidr",
        "karpstack:network.zones",
        "karpstack:unknown",
        "karpstack:cluster.version",
        "karpstack:karpenter.replicas",
        "karpstack:nodePools.default.template.spec.nodeClassRef.name",
    ]


def test_what_yaml_took_for_a_truth_value_in_a_spec_is_to_be_put_in_quotes() -> None:
    tainted = pool()
    tainted["template"]["spec"]["taints"] = [{"key": "gpu", "value": True, "effect": "NoSchedule"}]
    (taint,) = problems(example(nodePools__default=tainted))
    assert (taint.value, taint.fix) == ("true", "put it in quotes, 'true', so that YAML reads it as a text")


def test_the_error_names_their_number_and_shows_each() -> None:
    with pytest.raises(SettingsError, match=r"configuration has 2 errors; nothing was created") as caught:
        settings.load(example(name="Bad_Name", unknown={}))
    assert 'karpstack:name = "Bad_Name"\n    cannot name' in str(caught.value)


def test_secret_values_are_not_shown() -> None:
    (problem,) = problems(example(name="Hush_Hush"), secret_keys={"karpstack:name"})
    assert problem.value == "(secret)"
    assert "Hush" not in str(problem)


def test_reads_the_engines_configuration_unknown_keys_included(monkeypatch: pytest.MonkeyPatch) -> None:
    config: ContextVar[dict[str, str]] = ContextVar("config")
    config.set(example(typo="x"))
    monkeypatch.setattr(runtime_config, "CONFIG", config)
    with pytest.raises(SettingsError, match="karpstack:typo"):
        settings.read()


def test_reads_the_environment_as_the_python_host_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps(example(name="from-the-host")))
    assert settings.read().name == "from-the-host"


@pytest.mark.parametrize("schedule", ["0 9 * * mon-fry", "0 25 * * 1-5"])
def test_a_budget_that_only_karpenter_cannot_read_is_refused(schedule: str) -> None:
    """The API server takes it."""
    (problem,) = problems(example(nodePools__default=with_budget(schedule)))
    assert problem.key == "karpstack:nodePools.default.disruption.budgets[1]"
    assert f"has schedule {schedule!r}, which the API server takes and Karpenter cannot" in problem.consequence
    assert problem.fix.startswith("write five fields of cron, for example `0 9 * * mon-fri`")


def test_a_budget_that_karpenter_reads_is_taken() -> None:
    settings.load(example(nodePools__default=with_budget("0 9 * * mon-fri")))


def with_budget(schedule: str) -> dict[str, Any]:
    budgets = [{"nodes": "1"}, {"nodes": "0", "schedule": schedule, "duration": "8h"}]
    return pool() | {"disruption": {"consolidateAfter": "1m", "budgets": budgets}}
