"""AWS: roles, their trust, inline and attached policies, policies on queues, and who enters an EKS cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rules import tokens

from ..engine import Resource, by_urn, is_known, waits
from ..model import Entry, Permission
from .values import UNSAID, listed, shown, target, text

#: Class of pulumi_aws by token; those that no rule is about.
POD_IDENTITY: Final = tokens.aws("eks", "PodIdentityAssociation")
ACCESS_ENTRY: Final = tokens.aws("eks", "AccessEntry")
ACCESS_POLICY: Final = tokens.aws("eks", "AccessPolicyAssociation")

_NAMES: Final = ("arn", "name", "id")
_INLINE: Final = {
    tokens.IAM_ROLE_POLICY: "role",
    tokens.IAM_USER_POLICY: "user",
    tokens.IAM_GROUP_POLICY: "group",
}
_ATTACHED: Final = {
    tokens.IAM_ROLE_POLICY_ATTACHMENT: ("role",),
    tokens.IAM_USER_POLICY_ATTACHMENT: ("user",),
    tokens.IAM_GROUP_POLICY_ATTACHMENT: ("group",),
    tokens.IAM_POLICY_ATTACHMENT: ("roles", "users", "groups"),
}


def entries(resources: Sequence[Resource]) -> Iterator[Entry]:
    """Who may take a role: by its trust policy, and by associations of EKS Pod Identity."""
    known = by_urn(resources)
    roles = {urn: resource for urn, resource in known.items() if resource.token == tokens.IAM_ROLE}
    for resource in resources:
        if resource.token == tokens.IAM_ROLE:
            yield from _trusted(resource)
        elif resource.token == POD_IDENTITY:
            account = f"service account {text(resource, 'namespace')}/{text(resource, 'serviceAccount')}"
            yield Entry(
                identity=_principal(resource, "roleArn", roles),
                who=f"{account} of the cluster {text(resource, 'clusterName')}",
                when=("by EKS Pod Identity",),
                source=resource.name,
                urn=resource.urn,
            )


def _trusted(role: Resource) -> Iterator[Entry]:
    identity = _identity(role)

    def entry(who: str, *when: str) -> Entry:
        return Entry(identity=identity, who=who, when=when, source=role.name, urn=role.urn)

    document = role.inputs.get("assumeRolePolicy")
    statements = _statements(document)
    if statements is None:
        yield entry(waits(role, "assumeRolePolicy") if not is_known(document) else "its trust policy can't be read")
        return
    for statement in statements:
        denied = ("denied",) if statement.get("Effect") == "Deny" else ()
        for who in _who(statement):
            yield entry(who, *denied, *conditions(statement.get("Condition")))


def _who(statement: Mapping[str, Any]) -> list[str]:
    inverted = "NotPrincipal" in statement
    principal = statement.get("NotPrincipal" if inverted else "Principal")
    if isinstance(principal, Mapping):
        who = [f"{kind} {name}" for kind, names in principal.items() for name in listed(names)]
    else:
        who = ["everybody" if principal == "*" else shown(principal)]
    return [f"all but {', '.join(who)}"] if inverted else ["everybody" if name == "AWS *" else name for name in who]


def granted(resources: Sequence[Resource]) -> Iterator[Permission]:
    """What each identity may do."""
    known = by_urn(resources)
    roles, policies, queues = (
        {urn: resource for urn, resource in known.items() if resource.token == token}
        for token in (tokens.IAM_ROLE, tokens.IAM_POLICY, tokens.QUEUE)
    )
    attached: set[str] = set()
    for resource in resources:
        if resource.token == tokens.IAM_ROLE:
            yield from _role(resource)
        elif resource.token in _INLINE:
            identity = _principal(resource, _INLINE[resource.token], roles)
            yield from _document(resource, "policy", identity)
        elif resource.token in _ATTACHED:
            policy = target(resource, "policyArn", policies, _NAMES)
            for identity in _holders(resource, roles):
                if policy:
                    attached.add(policy.urn)
                    yield from _document(policy, "policy", identity)
                else:
                    yield _managed(resource, identity, text(resource, "policyArn"))
        elif resource.token == tokens.QUEUE_POLICY:
            queue = target(resource, "queueUrl", queues, ("url", "id"))
            yield from _on_queue(resource, queue.name if queue else text(resource, "queueUrl"))
        elif resource.token in (ACCESS_ENTRY, ACCESS_POLICY):
            yield _cluster_access(resource, _principal(resource, "principalArn", roles))
    for urn, policy in policies.items():
        if urn not in attached:
            yield from _document(policy, "policy", "nobody yet: no attachment in this stack")


def _role(role: Resource) -> Iterator[Permission]:
    identity = _identity(role)
    inline = role.inputs.get("inlinePolicies")
    for index, policy in enumerate(inline if isinstance(inline, list) else ()):
        if isinstance(policy, Mapping) and policy.get("policy"):
            yield from _document(role, "inlinePolicies", identity, policy["policy"])
        elif not is_known(policy):
            yield _unknown(role, identity, waits(role, f"inlinePolicies[{index}]", "inlinePolicies"))
    if inline is not None and not isinstance(inline, list):
        yield _unknown(role, identity, waits(role, "inlinePolicies"))
    arns = role.inputs.get("managedPolicyArns")
    for arn in listed(arns) if isinstance(arns, list) else ():
        yield _managed(role, identity, arn)
    if arns is not None and not isinstance(arns, list):
        yield _unknown(role, identity, waits(role, "managedPolicyArns"))


def _holders(attachment: Resource, roles: Mapping[str, Resource]) -> list[str]:
    holders: list[str] = []
    for key in _ATTACHED[attachment.token]:
        value = attachment.inputs.get(key)
        if isinstance(value, list):
            holders.extend(name if is_known(name) else text(attachment, key) for name in value)
        elif value is not None:
            holders.append(_principal(attachment, key, roles))
    return holders or [UNSAID]


def _managed(resource: Resource, identity: str, arn: str) -> Permission:
    """An attachment of a policy whose text is not in the stack: AWS's own, or another stack's."""
    return Permission(
        identity=identity,
        actions=(f"policy {arn}",),
        on=("as that policy says",),
        source=resource.name,
        urn=resource.urn,
    )


def _document(resource: Resource, key: str, identity: str, document: Any = None, on: str = "") -> Iterator[Permission]:
    document = resource.inputs.get(key) if document is None else document
    statements = _statements(document)
    if statements is None:
        why = waits(resource, key) if not is_known(document) else "is no policy document"
        yield _unknown(resource, identity, why)
        return
    for statement in statements:
        who = ", ".join(_who(statement)) if "Principal" in statement or "NotPrincipal" in statement else identity
        yield _permission(resource, who, statement, on)


def _on_queue(resource: Resource, queue: str) -> Iterator[Permission]:
    document = resource.inputs.get("policy")
    if _statements(document) is None:
        yield _unknown(resource, f"whoever the policy of {queue} names", waits(resource, "policy"))
        return
    yield from _document(resource, "policy", "nobody", document, queue)


def _permission(resource: Resource, identity: str, statement: Mapping[str, Any], on: str) -> Permission:
    actions = listed(statement.get("Action"))
    if "NotAction" in statement:
        actions = (f"all but {', '.join(listed(statement['NotAction']))}",)
    where = listed(statement.get("Resource"))
    if "NotResource" in statement:
        where = (f"all but {', '.join(listed(statement['NotResource']))}",)
    allows = statement.get("Effect") != "Deny"
    unlimited = "NotAction" in statement or any("*" in action for action in actions)
    return Permission(
        identity=identity,
        effect="Allow" if allows else "Deny",
        actions=actions,
        on=(on,) if on and where in ((), ("*",)) else where or ((on,) if on else ()),
        when=conditions(statement.get("Condition")),
        source=resource.name,
        urn=resource.urn,
        broad=allows and (unlimited or "NotResource" in statement or "*" in where),
    )


def _unknown(resource: Resource, identity: str, why: str) -> Permission:
    return Permission(
        identity=identity,
        source=resource.name,
        urn=resource.urn,
        unknown=why,
    )


def _cluster_access(resource: Resource, identity: str) -> Permission:
    cluster = f"the cluster {text(resource, 'clusterName')}"
    if resource.token == ACCESS_ENTRY:
        kind = text(resource, "type") or "STANDARD"
        groups = resource.inputs.get("kubernetesGroups")
        action = f"enter as {kind}" + (f", in the groups {', '.join(listed(groups))}" if groups else "")
    else:
        action = f"cluster policy {text(resource, 'policyArn')}"
        scope = resource.inputs.get("accessScope")
        if isinstance(scope, Mapping) and scope.get("type") == "namespace":
            cluster += f", namespaces {', '.join(listed(scope.get('namespaces')))}"
    return Permission(
        identity=identity,
        actions=(action,),
        on=(cluster,),
        source=resource.name,
        urn=resource.urn,
        broad="ClusterAdmin" in action,
    )


def _identity(role: Resource) -> str:
    name = text(role, "name")
    return f"role {name}" if name and is_known(role.inputs.get("name")) else f"role {role.name}"


def _principal(resource: Resource, key: str, roles: Mapping[str, Resource]) -> str:
    role = target(resource, key, roles, _NAMES)
    if role:
        return _identity(role)
    name = text(resource, key)
    return f"{key} {name}" if key in ("role", "user", "group") else name or UNSAID


def conditions(condition: Any) -> tuple[str, ...]:
    """`StringEquals aws:RequestTag/x = y`, one a key."""
    if not isinstance(condition, Mapping):
        return () if condition is None else (shown(condition),)
    return tuple(
        f"{operator} {key} = {' or '.join(listed(values))}"
        for operator, keys in condition.items()
        if isinstance(keys, Mapping)
        for key, values in keys.items()
    )


def _statements(document: Any) -> list[Mapping[str, Any]] | None:
    """The statements of a document, which is JSON text or an object; None where it is unknown or unreadable."""
    if isinstance(document, str):
        try:
            document = json.loads(document) if is_known(document) else None
        except ValueError:
            return None
    if not isinstance(document, Mapping):
        return None
    content = document.get("Statement")
    statements = content if isinstance(content, list) else [content]
    read = [statement for statement in statements if isinstance(statement, Mapping)]
    return read if len(read) == len(statements) else None
