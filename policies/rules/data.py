"""Data: what is encrypted, what is logged, and what says to whom things belong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pulumi_policy import PolicyResource

from . import graph
from .iam_documents import covers, listed, statements
from .rule import (
    PRODUCTION_ONLY,
    STRICTER_IN_PRODUCTION,
    Judgement,
    Properties,
    ResourceRule,
    StackRule,
    all_tags,
    section,
)
from .tokens import (
    AKS_CLUSTER,
    AKS_NODE_CLASS,
    AZURE_DIAGNOSTICS,
    AZURE_IDENTITY,
    AZURE_NETWORK,
    AZURE_RESOURCE_GROUP,
    CLUSTER,
    EC2_NODE_CLASS,
    EVENT_RULE,
    IAM_POLICY,
    IAM_ROLE,
    LAUNCH_TEMPLATE,
    NODE_GROUP,
    QUEUE,
    QUEUE_POLICY,
    SUBNET,
    VPC,
)

# What narrows a service, which sends for everybody who uses it; and what narrows everybody.
_SOURCES = frozenset({"aws:sourcearn", "aws:sourceaccount", "aws:sourceorgid"})
_PRINCIPALS = frozenset({"aws:principalaccount", "aws:principalarn"})
_CALLERS = _SOURCES | _PRINCIPALS | {"aws:principalorgid"}
# An account's number, or the beginning of an ARN that names one.
_ACCOUNT = re.compile(r"(\d{12})$|arn:[^:*?]+:[^:*?]+:[^:]*:(\d{12}):")
_ORGANIZATION = re.compile(r"o-[a-z0-9]{10,32}")
_QUEUE_ARN = re.compile(r"arn:[^:]+:sqs:[^:]*:(\d{12}):")
_QUEUE_URL = re.compile(r"https://[^/]+/(\d{12})/([^/]*)")
_ARN_PARTS = 6


# AKS's categories of logs that say who did what, and the groups that have them.
_AKS_AUDIT = ("kube-audit", "kube-audit-admin")
_WITH_AUDIT = ("audit", "alllogs")
# Those by which messages come, go and are read; `sqs:*` includes them.
_QUEUE_ACTIONS = ("sqs:sendmessage", "sqs:receivemessage", "sqs:deletemessage", "sqs:purgequeue")


def _queue(queue: Properties, judgement: Judgement) -> None:
    # SQS encrypts by itself unless told otherwise.
    if queue.get("sqsManagedSseEnabled") not in (None, True, "true") and not queue.get("kmsMasterKeyId"):
        judgement.violation("sqsManagedSseEnabled is false, and there is no kmsMasterKeyId.")


def _inline_queue_policy(queue: Properties, judgement: Judgement) -> None:
    if "policy" in set(queue) and queue["policy"]:
        _queue_policy(queue, judgement)


def _queue_policy(policy: Properties, judgement: Judgement) -> None:
    encrypted_only = False
    for where, statement in statements("policy", policy.get("policy"), judgement):
        with judgement.part():
            effect = statement.get("Effect")
            if effect == "Deny" and _is_whoever(statement.get("Principal")) and _transport(statement):
                encrypted_only = encrypted_only or _covers_queue(statement, policy)
            if effect == "Allow":
                _senders(where, statement, policy, judgement)
    if not encrypted_only and judgement.complete:
        judgement.violation("policy has no statement that denies access without TLS (aws:SecureTransport).")


def _senders(where: str, statement: Properties, policy: Properties, judgement: Judgement) -> None:
    """Judge who is allowed, and what: each is of the queue's account, or bound to it by a condition."""
    if "NotAction" in set(statement):
        judgement.violation(f"{where} allows all actions but those in NotAction.")
    principal, condition = statement.get("Principal"), section(statement, "Condition")
    if principal is None:
        judgement.violation(f"{where} allows everybody but those in NotPrincipal.")
        return
    if _is_everybody(principal):
        if not (callers := _named(condition, _CALLERS)):
            judgement.violation(f"{where} allows everybody.")
        else:
            _foreign(where, callers, statement, policy, judgement)
        return
    if isinstance(principal, str):
        judgement.violation(f"{where} allows {principal}, which is neither a service nor an account.")
        return
    if others := sorted(set(principal) - {"AWS", "Service"}):
        judgement.violation(f"{where} allows principals of the kind {others[0]}, which are of no account.")
    services = listed(principal.get("Service"))
    if len(services) and not (sources := _named(condition, _SOURCES)):
        judgement.violation(
            f"{where} admits {services[0]} of any account: it has no condition on aws:SourceArn or aws:SourceAccount "
            "that names an account."
        )
    elif len(services):
        _foreign(where, sources, statement, policy, judgement)
    if len(named := listed(principal.get("AWS"))):
        _foreign(where, [named], statement, policy, judgement)


def _foreign(where: str, tests: Sequence[Any], statement: Properties, policy: Properties, judgement: Judgement) -> None:
    """Judge principals and sources: all of one of the tests are of the queue's account, or of a known organization."""
    known = set(judgement.settings["organizations"])
    own = _own_account(statement, policy)
    if own is None:
        judgement.violation(
            f"{where} allows {tests[0][0]}, and its Resource names no queue whose account that could be."
        )
        return
    known |= {own}
    foreign = [
        [value for value in (test[index] for index in range(len(test))) if not known & {value, _account(value)}]
        for test in tests
    ]
    for value in min(foreign, key=len):
        if _ORGANIZATION.fullmatch(value):
            judgement.violation(f"{where} allows {value}, and the setting organizations does not name it.")
        else:
            judgement.violation(f"{where} allows {value}, and the queue is of {own}.")


def _own_account(statement: Properties, policy: Properties) -> str | None:
    """Return the queue's account by its URL, else that of all ARNs in the statement's Resource."""
    if found := _QUEUE_URL.match(policy.get("queueUrl") or ""):
        return found[1]
    queues = listed(statement.get("Resource"))
    own = {found[1] if (found := _QUEUE_ARN.match(queues[index])) else None for index in range(len(queues))}
    return own.pop() if len(own) == 1 else None


def _account(value: str) -> str | None:
    found = _ACCOUNT.match(value)
    return (found[1] or found[2]) if found else None


def _is_everybody(principal: Any) -> bool:
    if principal is None or isinstance(principal, str):
        return principal == "*"
    return any("*" in listed(principal[kind]) for kind in principal)


def _is_whoever(principal: Any) -> bool:
    """Whether a denial is for everybody; `Service: *` is not."""
    return _is_everybody(
        principal if principal is None or isinstance(principal, str) else {"AWS": principal.get("AWS")}
    )


def _covers_queue(statement: Properties, policy: Properties) -> bool:
    """Whether a statement is about the queue, as far as its account and name are known."""
    if "Resource" not in set(statement):
        return "NotResource" not in set(statement)
    url = _QUEUE_URL.match(policy.get("queueUrl") or "")
    account, name = (url[1], url[2]) if url else (None, policy.get("name"))
    resources = listed(statement.get("Resource"))
    for index in range(len(resources)):
        parts = resources[index].split(":", _ARN_PARTS - 1)
        if parts == ["*"] or (
            len(parts) == _ARN_PARTS
            and fnmatchcase("sqs", parts[2])
            and fnmatchcase(account or parts[4], parts[4])
            and fnmatchcase(name or parts[5], parts[5])
        ):
            return True
    return False


def _named(condition: Properties, keys: frozenset[str]) -> list[Any]:
    """The values of each test on one of the keys that have only accounts and organizations."""
    return [
        found
        for found in _conditions(condition, keys)
        if len(found)
        and all(_account(found[index]) or _ORGANIZATION.fullmatch(found[index]) for index in range(len(found)))
    ]


def _conditions(condition: Properties, keys: frozenset[str]) -> Iterator[Any]:
    """The values of each test that narrows one of the keys."""
    for operator in ("ArnEquals", "ArnLike", "StringEquals", "StringLike"):
        for key, values in section(condition, operator).items():
            if key.lower() in keys:
                yield listed(values)


def _transport(statement: Properties) -> bool:
    """Return whether a denial is of all actions, and has no other condition than that there is no TLS."""
    condition = section(statement, "Condition")
    tests = [
        (key.lower(), section(condition, operator)[key])
        for operator in condition
        for key in section(condition, operator)
    ]
    return (
        set(condition) <= {"Bool", "BoolIfExists"}
        and [(key, str(value).lower()) for key, value in tests] == [("aws:securetransport", "false")]
        and all(covers(statement, action) for action in _QUEUE_ACTIONS)
    )


def _eks_secrets(cluster: Properties, judgement: Judgement) -> None:
    configuration = section(cluster, "encryptionConfig")
    if "secrets" not in listed(configuration.get("resources")):
        judgement.violation("encryptionConfig does not name the resource secrets.")


def _aks_secrets(cluster: Properties, judgement: Judgement) -> None:
    # Azure always encrypts etcd; a key of one's own is a choice.
    wanted = judgement.settings["customerKeyOnAzure"]
    if wanted and not section(cluster, "securityProfile", "azureKeyVaultKms").get("enabled"):
        judgement.violation("securityProfile.azureKeyVaultKms.enabled is not true.")


def _eks_logs(cluster: Properties, judgement: Judgement) -> None:
    kept = listed(cluster.get("enabledClusterLogTypes"))
    known = {kept[index] for index in range(len(kept))}
    if missing := [kind for kind in judgement.settings["types"] if kind not in known]:
        judgement.violation(f"enabledClusterLogTypes lacks {', '.join(missing)}.")


def _aks_logs(resources: list[PolicyResource], judgement: Judgement) -> None:
    settings = list(graph.of(resources, AZURE_DIAGNOSTICS))
    for cluster in graph.of(resources, AKS_CLUSTER):
        kept = False
        with judgement.part():
            for setting in settings:
                about = cluster in graph.sources(setting, "resourceUri")
                logs = setting.props.get("logs") or []
                if about or _is_about(graph.output(setting, "resourceUri"), graph.output(cluster, "name")):
                    kept = kept or any(_is_audited(logs[index]) for index in range(len(logs)))
        if not kept and judgement.complete:
            judgement.violation(f"no diagnostic setting keeps the audit log of {cluster.name}.", cluster.urn)


def _is_audited(log: Properties) -> bool:
    return log.get("enabled") is True and (
        (log.get("category") or "").lower() in _AKS_AUDIT or (log.get("categoryGroup") or "").lower() in _WITH_AUDIT
    )


def _is_about(resource_id: str, cluster: str) -> bool:
    return resource_id.lower().endswith(f"/managedclusters/{cluster}".lower())


def _tags(*path: str) -> Callable[[Properties, Judgement], None]:
    def check(resource: Properties, judgement: Judgement) -> None:
        tags = all_tags(section(resource, *path))
        # Values may be unknown; that there is a tag is seen by its name. Said of each resource in the same words, so
        # that whoever lists findings can say it once.
        if missing := [key for key in judgement.settings["keys"] if key not in set(tags)]:
            judgement.violation(f"has no {'tag' if len(missing) == 1 else 'tags'} {', '.join(missing)}.")
        for key in judgement.settings["keys"]:
            with judgement.part():
                if key in set(tags) and not str(tags[key]).strip():
                    judgement.violation(f"has an empty tag {key}.")

    return check


QUEUE_ENCRYPTED = ResourceRule(name="queue-encrypted", checks={QUEUE: _queue})

QUEUE_POLICY_CLOSED = ResourceRule(
    name="queue-policy-closed",
    settings={
        # IDs of the organizations whose accounts may send by a condition on aws:SourceOrgID or aws:PrincipalOrgID.
        "organizations": {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []},
    },
    checks={QUEUE_POLICY: _queue_policy, QUEUE: _inline_queue_policy},
)

CLUSTER_SECRETS_ENCRYPTED = ResourceRule(
    name="cluster-secrets-encrypted",
    settings={
        # AKS encrypts with a key of Azure's own; whether one of the subscription's is asked for.
        "customerKeyOnAzure": {"type": "boolean", "default": False},
    },
    checks={CLUSTER: _eks_secrets, AKS_CLUSTER: _aks_secrets},
)

CLUSTER_LOGS = ResourceRule(
    name="cluster-logs",
    settings={
        "types": {
            "type": "array",
            "items": {"type": "string", "enum": ["api", "audit", "authenticator", "controllerManager", "scheduler"]},
            "default": ["audit"],
        },
    },
    production={"types": ["api", "audit", "authenticator"]},
    checks={CLUSTER: _eks_logs},
)

AKS_LOGS = StackRule(name="aks-logs", enforcement=PRODUCTION_ONLY, check=_aks_logs)

TAGS_REQUIRED = ResourceRule(
    name="tags-required",
    settings={
        "keys": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "default": ["owner", "environment", "cost-centre"],
        },
    },
    enforcement=STRICTER_IN_PRODUCTION,
    checks={
        **{
            token: _tags()
            for token in (
                AKS_CLUSTER,
                AZURE_IDENTITY,
                AZURE_NETWORK,
                AZURE_RESOURCE_GROUP,
                CLUSTER,
                EVENT_RULE,
                IAM_POLICY,
                IAM_ROLE,
                LAUNCH_TEMPLATE,
                NODE_GROUP,
                QUEUE,
                SUBNET,
                VPC,
            )
        },
        EC2_NODE_CLASS: _tags("spec"),
        AKS_NODE_CLASS: _tags("spec"),
    },
)
