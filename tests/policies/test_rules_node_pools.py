"""rules/node_pools.py: each rule one good input, one mutation per clause, unknown values."""

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.node_pools import NODE_POOL_ARCHITECTURE as ARCHITECTURE
from rules.node_pools import NODE_POOL_CILIUM_STARTUP_TAINT as TAINT
from rules.node_pools import NODE_POOL_CONSOLIDATION as CONSOLIDATION
from rules.node_pools import NODE_POOL_DISRUPTION_BUDGETS as BUDGETS
from rules.node_pools import NODE_POOL_EXPIRE_AFTER as EXPIRE
from rules.node_pools import NODE_POOL_LIMITS as LIMITS
from rules.node_pools import NODE_POOL_TERMINATION_GRACE as GRACE

TAINTS = ("spec", "template", "spec", "startupTaints")


def node_pool() -> Resource:
    return Resource(
        tokens.NODE_POOL,
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "limits": {"cpu": "100"},
                "template": {
                    "spec": {
                        "startupTaints": [
                            {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
                        ]
                    }
                },
            },
        },
    )


def static_pool() -> Resource:
    return node_pool().change("spec", "replicas", to=3).without("spec", "limits")


OTHER_TAINT = {"key": "example.com/warming-up", "effect": "NoSchedule"}

CASES = [
    Case(name="a limit on cpu", rule=LIMITS, given=node_pool()),
    Case(
        name="a limit on memory",
        rule=LIMITS,
        given=node_pool().change("spec", "limits", to={"memory": "100Gi"}),
    ),
    Case(name="a static pool", rule=LIMITS, given=static_pool()),
    Case(
        name="no limits",
        rule=LIMITS,
        given=node_pool().without("spec", "limits"),
        violations=("spec.limits sets nothing, and one of cpu, memory",),
    ),
    Case(
        name="no spec",
        rule=LIMITS,
        given=node_pool().without("spec"),
        violations=("spec.limits sets nothing",),
    ),
    Case(
        name="a limit that is null",
        rule=LIMITS,
        given=node_pool().change("spec", "limits", "cpu", to=None),
        violations=("spec.limits sets cpu",),
    ),
    Case(
        name="limits on something else",
        rule=LIMITS,
        given=node_pool().change("spec", "limits", to={"nvidia.com/gpu": "4"}),
        violations=("spec.limits sets nvidia.com/gpu",),
    ),
    Case(
        name="another resource is wanted",
        rule=LIMITS,
        given=node_pool(),
        settings={"resources": ["nodes"]},
        violations=("one of nodes",),
    ),
    Case(
        name="the limits are unknown",
        rule=LIMITS,
        given=node_pool().change("spec", "limits", to=UNKNOWN),
        unknown="spec.limits",
    ),
    Case(
        name="the limit's value is unknown",
        rule=LIMITS,
        given=node_pool().change("spec", "limits", "cpu", to=UNKNOWN),
        unknown="spec.limits.cpu",
    ),
    Case(name="declared", rule=TAINT, given=node_pool()),
    Case(
        name="no startup taints",
        rule=TAINT,
        given=node_pool().without(*TAINTS),
        violations=("startupTaints has no node.cilium.io/agent-not-ready",),
    ),
    Case(
        name="no startup taints on a cluster that is there with a network of its own",
        rule=TAINT,
        given=node_pool().without(*TAINTS),
        shown=(
            Resource(tokens.EXISTING_CLUSTER, {}),
            Resource(tokens.HELM_RELEASE, {"chart": "oci://example/karpenter"}, "karpenter"),
        ),
    ),
    Case(
        name="no startup taints on a cluster that is there and gets Cilium",
        rule=TAINT,
        given=node_pool().without(*TAINTS),
        shown=(Resource(tokens.EXISTING_CLUSTER, {}), Resource(tokens.HELM_RELEASE, {"chart": "cilium"}, "cilium")),
        violations=("startupTaints has no node.cilium.io/agent-not-ready",),
    ),
    Case(
        name="another startup taint",
        rule=TAINT,
        given=node_pool().change(*TAINTS, to=[OTHER_TAINT]),
        violations=("startupTaints has no node.cilium.io/agent-not-ready",),
    ),
    Case(
        name="a taint that does not start up",
        rule=TAINT,
        given=node_pool()
        .without(*TAINTS)
        .change(*TAINTS[:-1], "taints", to=[{"key": "node.cilium.io/agent-not-ready", "effect": "NoExecute"}]),
        violations=("startupTaints has no node.cilium.io/agent-not-ready",),
    ),
    Case(
        name="another effect",
        rule=TAINT,
        given=node_pool().change(*TAINTS, 0, "effect", to="NoSchedule"),
        violations=("startupTaints[0] has the effect NoSchedule, not NoExecute",),
    ),
    Case(
        name="another effect is wanted",
        rule=TAINT,
        given=node_pool(),
        settings={"effect": "NoSchedule"},
        violations=("startupTaints[0] has the effect NoExecute, not NoSchedule",),
    ),
    Case(
        name="another key is wanted",
        rule=TAINT,
        given=node_pool(),
        settings={"key": "example.com/no-network"},
        violations=("startupTaints has no example.com/no-network",),
    ),
    Case(
        name="the taints are unknown",
        rule=TAINT,
        given=node_pool().change(*TAINTS, to=UNKNOWN),
        unknown=".".join(TAINTS),
    ),
    Case(
        name="one taint is unknown, and may be the one",
        rule=TAINT,
        given=node_pool().change(*TAINTS, to=[UNKNOWN, OTHER_TAINT]),
        unknown=".".join([*TAINTS, "0"]),
    ),
    Case(
        name="one taint is unknown, another has the wrong effect",
        rule=TAINT,
        given=node_pool().change(
            *TAINTS, to=[UNKNOWN, {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}]
        ),
        violations=("startupTaints[1] has the effect NoSchedule",),
        unknown=".".join([*TAINTS, "0"]),
    ),
    Case(
        name="the taint's value is unknown, and does not matter",
        rule=TAINT,
        given=node_pool().change(*TAINTS, 0, "value", to=UNKNOWN),
    ),
    Case(
        name="the effect is unknown",
        rule=TAINT,
        given=node_pool().change(*TAINTS, 0, "effect", to=UNKNOWN),
        unknown=".".join([*TAINTS, "0", "effect"]),
    ),
]

DISRUPTION = ("spec", "disruption")
EXPIRE_AFTER = ("spec", "template", "spec", "expireAfter")
GRACE_PERIOD = ("spec", "template", "spec", "terminationGracePeriod")
REQUIREMENTS = ("spec", "template", "spec", "requirements")
AMD64 = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}


def budgets(*entries: dict[str, object]) -> Resource:
    return node_pool().change(*DISRUPTION, to={"budgets": list(entries)})


CASES += [
    Case(name="Karpenter's own", rule=BUDGETS, given=node_pool()),
    Case(
        name="slow, and never in office hours",
        rule=BUDGETS,
        given=budgets({"nodes": "10%"}, {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}),
    ),
    Case(name="all at once", rule=BUDGETS, given=budgets({"nodes": "100%"}), violations=("lets 100% of the nodes go",)),
    Case(
        name="never", rule=BUDGETS, given=budgets({"nodes": "0"}), violations=("lets no node go, at no time, for any",)
    ),
    Case(
        name="never for one reason",
        rule=BUDGETS,
        given=budgets({"nodes": "0%", "reasons": ["Drifted"]}),
        violations=(
            "lets no node go, at no time, for Drifted",
            "limit nothing for Underutilized on Monday at 00:00 UTC, for example: all nodes may go at once.",
        ),
    ),
    Case(
        name="an empty list is no budget",
        rule=BUDGETS,
        given=budgets(),
        violations=("limit nothing for Underutilized and Drifted on Monday at 00:00 UTC",),
    ),
    Case(
        name="a lone one with a schedule",
        rule=BUDGETS,
        given=budgets({"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}),
        violations=("limit nothing for Underutilized and Drifted on Monday at 00:00 UTC",),
    ),
    Case(
        name="schedules with a gap between them",
        rule=BUDGETS,
        given=budgets(
            {"nodes": "10%", "schedule": "@daily", "duration": "20h"},
            {"nodes": "5%", "schedule": "0 18 * * *", "duration": "4h", "reasons": ["Drifted"]},
        ),
        violations=("for Underutilized on Monday at 20:00 UTC", "for Drifted on Monday at 22:00 UTC"),
    ),
    Case(
        name="schedules that leave no gap",
        rule=BUDGETS,
        given=budgets(
            {"nodes": "10%", "schedule": "@daily", "duration": "12h"},
            {"nodes": 1.0, "schedule": "0 12 * * *", "duration": "12h"},
        ),
    ),
    Case(
        name="empty nodes may all go",
        rule=BUDGETS,
        given=budgets({"nodes": "10%", "reasons": ["Underutilized", "Drifted"]}),
    ),
    Case(
        name="a schedule that Karpenter can't read",
        rule=BUDGETS,
        given=budgets({"nodes": "10%", "schedule": "at night", "duration": "8h"}),
        violations=("spec.disruption.budgets: schedule of a disruption budget is 'at night': Karpenter would disrupt",),
    ),
    Case(
        name="a stricter share",
        rule=BUDGETS,
        given=budgets({"nodes": "30%"}),
        settings={"largestShare": 20.0},
        violations=("lets 30% of the nodes go at a time, more than 20%",),
    ),
    Case(
        name="one is unknown, another is none",
        rule=BUDGETS,
        given=budgets({"nodes": UNKNOWN}, {"nodes": "100%"}),
        violations=("budgets[1] lets 100%",),
        unknown="spec.disruption.budgets.0.nodes",
    ),
    Case(name="an hour", rule=GRACE, given=node_pool().change(*GRACE_PERIOD, to="1h")),
    Case(name="none", rule=GRACE, given=node_pool(), violations=("is not set: nothing bounds how long",)),
    Case(
        name="no duration",
        rule=GRACE,
        given=node_pool().change(*GRACE_PERIOD, to="an hour"),
        violations=("terminationGracePeriod is an hour, which is no duration",),
    ),
    Case(
        name="unknown",
        rule=GRACE,
        given=node_pool().change(*GRACE_PERIOD, to=UNKNOWN),
        unknown=".".join(GRACE_PERIOD),
    ),
    Case(name="Karpenter's own", rule=CONSOLIDATION, given=node_pool()),
    Case(name="a static pool", rule=CONSOLIDATION, given=static_pool()),
    Case(
        name="only empty nodes",
        rule=CONSOLIDATION,
        given=node_pool().change(*DISRUPTION, to={"consolidationPolicy": "WhenEmpty"}),
        violations=("consolidationPolicy is WhenEmpty",),
    ),
    Case(
        name="only empty nodes, allowed",
        rule=CONSOLIDATION,
        given=node_pool().change(*DISRUPTION, to={"consolidationPolicy": "WhenEmpty"}),
        settings={"policies": ["WhenEmpty"]},
    ),
    Case(
        name="never, the policy is unknown",
        rule=CONSOLIDATION,
        given=node_pool().change(*DISRUPTION, to={"consolidationPolicy": UNKNOWN, "consolidateAfter": "Never"}),
        violations=("consolidateAfter is Never",),
        unknown="spec.disruption.consolidationPolicy",
    ),
    Case(name="Karpenter's own", rule=EXPIRE, given=node_pool()),
    Case(name="a month", rule=EXPIRE, given=node_pool().change(*EXPIRE_AFTER, to="719h59m60s")),
    Case(
        name="never",
        rule=EXPIRE,
        given=node_pool().change(*EXPIRE_AFTER, to="Never"),
        violations=("expireAfter is Never",),
    ),
    Case(
        name="longer than wanted",
        rule=EXPIRE,
        given=node_pool().change(*EXPIRE_AFTER, to="24h1m"),
        settings={"longestHours": 24.0},
        violations=("expireAfter is 24h1m, longer than 24h",),
    ),
    Case(
        name="no duration",
        rule=EXPIRE,
        given=node_pool().change(*EXPIRE_AFTER, to="a month"),
        violations=("which is no duration",),
    ),
    Case(
        name="unknown",
        rule=EXPIRE,
        given=node_pool().change(*EXPIRE_AFTER, to=UNKNOWN),
        unknown=".".join(EXPIRE_AFTER),
    ),
    Case(name="explicit", rule=ARCHITECTURE, given=node_pool().change(*REQUIREMENTS, to=[AMD64])),
    Case(
        name="by its old name",
        rule=ARCHITECTURE,
        given=node_pool().change(*REQUIREMENTS, to=[AMD64 | {"key": "beta.kubernetes.io/arch"}]),
    ),
    Case(
        name="as a label of the pool",
        rule=ARCHITECTURE,
        given=node_pool().change("spec", "template", to={"metadata": {"labels": {"kubernetes.io/arch": "arm64"}}}),
    ),
    Case(name="not said", rule=ARCHITECTURE, given=node_pool(), violations=("has no kubernetes.io/arch In",)),
    Case(
        name="anything that exists",
        rule=ARCHITECTURE,
        given=node_pool().change(*REQUIREMENTS, to=[{"key": "kubernetes.io/arch", "operator": "Exists"}]),
        violations=("has no kubernetes.io/arch In",),
    ),
    Case(
        name="the requirements are unknown",
        rule=ARCHITECTURE,
        given=node_pool().change(*REQUIREMENTS, to=UNKNOWN),
        unknown=".".join(REQUIREMENTS),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
