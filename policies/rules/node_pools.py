"""Node pools: what Karpenter may launch, and when pods may use it. Does not judge machines (nodes.py)."""

from pulumi_policy import Severity

from .rule import Judgement, Properties, ResourceRule, section
from .tokens import NODE_POOL


def _limits(node_pool: Properties, judgement: Judgement) -> None:
    spec = section(node_pool, "spec")
    if spec.get("replicas") is not None:
        return  # a static pool has the size that it says, and takes no limits on cpu and memory
    limits = section(spec, "limits")
    wanted = judgement.settings["resources"]
    # `in` would read the value, which may be unknown, so it is asked of the set of names.
    named = [resource for resource in wanted if resource in set(limits)]
    if all(limits[resource] is None for resource in named):
        found = ", ".join(limits) or "nothing"
        judgement.violation(f"spec.limits sets {found}, and one of {', '.join(wanted)} is needed.")


def _startup_taint(node_pool: Properties, judgement: Judgement) -> None:
    key, effect = judgement.settings["key"], judgement.settings["effect"]
    path = "spec.template.spec.startupTaints"
    taints = section(node_pool, "spec", "template", "spec").get("startupTaints") or []
    declared = False
    for index in range(len(taints)):
        with judgement.part():
            taint = taints[index]
            if taint.get("key") != key:
                continue
            declared = True
            if taint.get("effect") != effect:
                judgement.violation(f"{path}[{index}] has the effect {taint.get('effect')}, not {effect}.")
    if not declared and judgement.complete:
        judgement.violation(f"{path} has no {key} with the effect {effect}.")


NODE_POOL_LIMITS = ResourceRule(
    name="node-pool-limits",
    description="Each NodePool has a limit on cpu or memory.",
    rationale="Karpenter launches whatever pending pods ask for; the limit is the only brake it knows.",
    consequence="A runaway deployment buys machines until the account's quota is used up.",
    remediation="Set spec.limits.cpu or spec.limits.memory to the largest size that you would pay for.",
    url="https://karpenter.sh/docs/concepts/nodepools/#speclimits",
    severity=Severity.HIGH,
    settings={
        # At least one of these must have a limit.
        "resources": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "default": ["cpu", "memory"],
        },
    },
    checks={NODE_POOL: _limits},
)

NODE_POOL_CILIUM_STARTUP_TAINT = ResourceRule(
    name="node-pool-cilium-startup-taint",
    description="Each NodePool declares the startup taint that Cilium lifts when its agent is ready.",
    rationale=(
        "The taint keeps pods off a node that has no network yet, and its declaration tells Karpenter that "
        "it will go away."
    ),
    consequence="Pods start without a network, or Karpenter launches nodes again that it already has.",
    remediation=(
        "Add {key: node.cilium.io/agent-not-ready, value: 'true', effect: NoExecute} to "
        "spec.template.spec.startupTaints."
    ),
    url="https://docs.cilium.io/en/stable/installation/taints/",
    severity=Severity.HIGH,
    settings={
        "key": {"type": "string", "minLength": 1, "default": "node.cilium.io/agent-not-ready"},
        "effect": {"type": "string", "enum": ["NoExecute", "NoSchedule"], "default": "NoExecute"},
    },
    checks={NODE_POOL: _startup_taint},
)
