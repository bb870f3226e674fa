"""Identity on Azure: who gets in, who may do what, and where. Does not judge the network."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from .rule import STRICTER_IN_PRODUCTION, Judgement, Properties, ResourceRule, section
from .tokens import AKS_CLUSTER, AZURE_FEDERATED_CREDENTIAL, AZURE_ROLE_ASSIGNMENT, AZURE_ROLE_DEFINITION

_SUBJECT = re.compile(r"system:serviceaccount:[^:*?]+:[^:*?]+")
# One part of a resource ID: neither a step up, nor a character that a URL takes for something else.
_PART = r"(?!\.{1,2}(?:/|$))[^/?#%\\]+"
_IN_RESOURCE_GROUP = re.compile(rf"/?subscriptions/{_PART}/resourceGroups/{_PART}(/{_PART})*/?", re.IGNORECASE)

# Built-in roles that give away everything, or the right to give anything away; GUIDs are the same everywhere.
PRIVILEGED = {
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635": "Owner",
    "b24988ac-6180-42a0-ab88-20f7382dd24c": "Contributor",
    "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9": "User Access Administrator",
    "f58310d9-a9f6-439a-9e8d-f62e7b41a168": "Role Based Access Control Administrator",
    "8b54135c-b56d-4d72-a534-26097cfdc8d8": "Key Vault Data Access Administrator",
}
_ROLE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What a custom role must not allow: assigning roles, and changing what a role allows.
_GRANTING = (
    "microsoft.authorization/roleassignments/write",
    "microsoft.authorization/roledefinitions/write",
    "microsoft.authorization/elevateaccess/action",
    # Privileged Identity Management assigns roles by these.
    "microsoft.authorization/roleassignmentschedulerequests/write",
    "microsoft.authorization/roleeligibilityschedulerequests/write",
)


def _federation(credential: Properties, judgement: Judgement) -> None:
    with judgement.part():
        subject = credential.get("subject") or ""
        if not _SUBJECT.fullmatch(subject):
            judgement.violation(f"subject is {subject or 'not set'}, not system:serviceaccount:<namespace>:<name>.")
    with judgement.part():
        audiences = credential.get("audiences") or []
        named = [audiences[index] for index in range(len(audiences))]
        wanted = judgement.settings["audience"]
        if named != [wanted]:
            judgement.violation(f"audiences are [{', '.join(named)}], not [{wanted}].")
    with judgement.part():
        issuer = credential.get("issuer") or ""
        if not re.fullmatch(r"https://[^*?\s]+", issuer):
            judgement.violation(f"issuer is {issuer or 'not set'}, not the https URL of one cluster.")


def _scope(assignment: Properties, judgement: Judgement) -> None:
    scope = assignment.get("scope") or ""
    if not _IN_RESOURCE_GROUP.fullmatch(scope):
        judgement.violation(f"scope is {scope or 'not set'}, which is not a resource group or something in one.")


def _role(assignment: Properties, judgement: Judgement) -> None:
    given = assignment.get("roleDefinitionId") or ""
    role = given.strip().rstrip("/").rsplit("/", 1)[-1].lower()
    name = PRIVILEGED.get(role)
    if name and name not in judgement.settings["allowed"]:
        judgement.violation(f"roleDefinitionId is that of {name}.")
    elif not _ROLE_ID.fullmatch(role):
        judgement.violation(f"roleDefinitionId is {given or 'not set'}, which does not end in the ID of a role.")


def _definition(definition: Properties, judgement: Judgement) -> None:
    permissions = definition.get("permissions") or []
    for index in range(len(permissions)):
        for key in ("actions", "dataActions"):
            with judgement.part():
                actions = permissions[index].get(key) or []
                for each in range(len(actions)):
                    with judgement.part():
                        _action(f"permissions[{index}].{key}[{each}]", actions[each], judgement)


def _action(path: str, action: str, judgement: Judgement) -> None:
    """Judge an action of a custom role. notActions are ignored: Contributor has some, and is not narrow."""
    provider, _, rest = action.lower().partition("/")
    if ("*" in provider and not f"/{rest}".endswith("/read")) or any(
        fnmatchcase(each, action.lower()) for each in _GRANTING
    ):
        judgement.violation(f"{path} is {action}, which allows everything, or to grant it.")


def _managed_identity(cluster: Properties, judgement: Judgement) -> None:
    with judgement.part():
        client = section(cluster, "servicePrincipalProfile").get("clientId")
        if client and client != "msi":
            judgement.violation(f"servicePrincipalProfile.clientId is {client}.")
    with judgement.part():
        kind = section(cluster, "identity").get("type") or "None"
        if kind == "None":
            judgement.violation("identity.type is not set.")


def _local_accounts(cluster: Properties, judgement: Judgement) -> None:
    with judgement.part():
        if cluster.get("disableLocalAccounts") is not True:
            judgement.violation("disableLocalAccounts is not true.")
    with judgement.part():
        if section(cluster, "aadProfile").get("managed") is not True:
            judgement.violation("aadProfile.managed is not true: Entra does not say who gets in.")


def _workload_identity(cluster: Properties, judgement: Judgement) -> None:
    with judgement.part():
        if section(cluster, "oidcIssuerProfile").get("enabled") is not True:
            judgement.violation("oidcIssuerProfile.enabled is not true.")
    with judgement.part():
        if section(cluster, "securityProfile", "workloadIdentity").get("enabled") is not True:
            judgement.violation("securityProfile.workloadIdentity.enabled is not true.")


def _monitoring_identity(cluster: Properties, judgement: Judgement) -> None:
    profiles = section(cluster, "addonProfiles")
    for name in profiles:
        if name.lower() != "omsagent":
            continue
        with judgement.part():
            profile = section(profiles, name)
            if profile.get("enabled") is not True:
                continue
            said = section(profile, "config")
            given = next((said[key] for key in said if key.lower() == "useaadauth"), None)
            if str(given).lower() != "true":
                judgement.violation(f"addonProfiles.{name}.config.useAADAuth is {given or 'not set'}.")


AZURE_FEDERATION_EXACT = ResourceRule(
    name="azure-federation-exact",
    settings={"audience": {"type": "string", "minLength": 1, "default": "api://AzureADTokenExchange"}},
    checks={AZURE_FEDERATED_CREDENTIAL: _federation},
)

AZURE_ROLE_SCOPE = ResourceRule(name="azure-role-scope", checks={AZURE_ROLE_ASSIGNMENT: _scope})

AZURE_NO_PRIVILEGED_ROLE = ResourceRule(
    name="azure-no-privileged-role",
    settings={
        # Of the privileged roles, those that may be assigned nevertheless.
        "allowed": {
            "type": "array",
            "items": {"type": "string", "enum": sorted(PRIVILEGED.values())},
            "default": [],
        },
    },
    checks={AZURE_ROLE_ASSIGNMENT: _role, AZURE_ROLE_DEFINITION: _definition},
)

AKS_MANAGED_IDENTITY = ResourceRule(name="aks-managed-identity", checks={AKS_CLUSTER: _managed_identity})

AKS_LOCAL_ACCOUNTS_OFF = ResourceRule(name="aks-local-accounts-off", checks={AKS_CLUSTER: _local_accounts})

AKS_WORKLOAD_IDENTITY = ResourceRule(name="aks-workload-identity", checks={AKS_CLUSTER: _workload_identity})

AKS_MONITORING_IDENTITY = ResourceRule(
    name="aks-monitoring-identity",
    enforcement=STRICTER_IN_PRODUCTION,
    checks={AKS_CLUSTER: _monitoring_identity},
)
