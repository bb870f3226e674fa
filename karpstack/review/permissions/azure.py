"""Azure: role assignments, federated credentials, and the groups that administer an AKS cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rules import tokens
from rules.azure_identity import PRIVILEGED

from ..engine import Resource, by_urn, is_known, name_of
from ..model import Entry, Permission
from .values import UNSAID, listed, target, text

#: Built-in roles that such stacks assign; GUIDs are the same everywhere. One that is not here is shown by its GUID.
_ROLES: Final = {
    **PRIVILEGED,
    "4d97b98b-1d4f-4787-a291-c67834d212e7": "Network Contributor",
    "9980e02c-c2be-4d73-94e8-173b1dc7cf3c": "Virtual Machine Contributor",
    "f1a07417-d97a-45cb-824c-7a7467783830": "Managed Identity Operator",
    "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b": "Azure Kubernetes Service RBAC Cluster Admin",
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": "AcrPull",
    "4633458b-17de-408a-b874-0445c86b69e6": "Key Vault Secrets User",
}
_BROAD: Final = {*PRIVILEGED.values(), "Azure Kubernetes Service RBAC Cluster Admin"}


def entries(resources: Sequence[Resource]) -> Iterator[Entry]:
    """Which tokens Entra takes for an identity."""
    known = by_urn(resources)
    identities = {urn: resource for urn, resource in known.items() if resource.token == tokens.AZURE_IDENTITY}
    for resource in resources:
        if resource.token != tokens.AZURE_FEDERATED_CREDENTIAL:
            continue
        audiences = resource.inputs.get("audiences")
        identity = target(resource, "resourceName", identities, ("name", "resourceName"))
        yield Entry(
            identity=_identity(identity) if identity else f"identity {text(resource, 'resourceName')}",
            who=_subject(text(resource, "subject")),
            when=(
                f"issuer {text(resource, 'issuer') or 'not set'}",
                *((f"audience {', '.join(listed(audiences))}",) if audiences else ()),
            ),
            source=resource.name,
            urn=resource.urn,
        )


def _subject(subject: str) -> str:
    """`system:serviceaccount:a:b` -> `service account a/b`; any other as it is."""
    kind, _, name = subject.partition("system:serviceaccount:")
    return f"service account {name.replace(':', '/', 1)}" if name and not kind else subject


def granted(resources: Sequence[Resource]) -> Iterator[Permission]:
    """Role assignments, and administrators of clusters."""
    known = by_urn(resources)
    for resource in resources:
        if resource.token == tokens.AZURE_ROLE_ASSIGNMENT:
            yield _assignment(resource, known)
        elif resource.token == tokens.AKS_CLUSTER:
            yield from _administrators(resource)


def _assignment(resource: Resource, known: Mapping[str, Resource]) -> Permission:
    role = _role(resource)
    return Permission(
        identity=_principal(resource, known),
        actions=(role,),
        on=(_scope(resource),),
        when=(f"condition {text(resource, 'condition')}",) if resource.inputs.get("condition") else (),
        source=resource.name,
        urn=resource.urn,
        broad=role.removeprefix("role ") in _BROAD,
    )


def _scope(resource: Resource) -> str:
    """A resource ID; one that is yet to come is that of the resource that it comes from."""
    if is_known(resource.inputs.get("scope")):
        return text(resource, "scope") or UNSAID
    return ", ".join(name_of(urn) for urn in resource.source("scope")) or text(resource, "scope")


def _role(resource: Resource) -> str:
    role = text(resource, "roleDefinitionId")
    guid = role.rsplit("/", 1)[-1].lower()
    return f"role {_ROLES.get(guid, guid)}" if is_known(resource.inputs.get("roleDefinitionId")) else f"role {role}"


def _principal(resource: Resource, known: Mapping[str, Resource]) -> str:
    for urn in resource.source("principalId"):
        if urn in known and known[urn].token == tokens.AZURE_IDENTITY:
            return _identity(known[urn])
    sources = [name_of(urn) for urn in resource.source("principalId")]
    value = resource.inputs.get("principalId")
    kind = text(resource, "principalType") or "principal"
    if sources:
        return f"{kind} of {', '.join(sources)}"
    # Without a source it comes from a call, such as that for the one who deploys.
    return f"{kind} {value}" if value is not None and is_known(value) else f"{kind}, {UNSAID}"


def _administrators(cluster: Resource) -> Iterator[Permission]:
    profile = cluster.inputs.get("aadProfile")
    groups = profile.get("adminGroupObjectIDs") if isinstance(profile, Mapping) else None
    for group in listed(groups):
        yield Permission(
            identity=f"Entra group {group}",
            actions=("administer the cluster",),
            on=(cluster.name,),
            source=cluster.name,
            urn=cluster.urn,
            broad=True,
        )


def _identity(identity: Resource) -> str:
    name = identity.inputs.get("resourceName")
    return f"identity {name if isinstance(name, str) and is_known(name) else identity.name}"
