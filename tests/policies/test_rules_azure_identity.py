"""rules/azure_identity.py: each rule one good input, one mutation per clause, unknown values."""

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.azure_identity import AKS_LOCAL_ACCOUNTS_OFF as LOCAL
from rules.azure_identity import AKS_MANAGED_IDENTITY as MANAGED
from rules.azure_identity import AKS_MONITORING_IDENTITY as MONITORING
from rules.azure_identity import AKS_WORKLOAD_IDENTITY as WORKLOAD
from rules.azure_identity import AZURE_FEDERATION_EXACT as FEDERATION
from rules.azure_identity import AZURE_NO_PRIVILEGED_ROLE as PRIVILEGED
from rules.azure_identity import AZURE_ROLE_SCOPE as SCOPE

GROUP = "/subscriptions/12345678-1234-1234-1234-123456789012/resourceGroups/nodes"
ROLES = "/subscriptions/12345678-1234-1234-1234-123456789012/providers/Microsoft.Authorization/roleDefinitions"
OWNER = f"{ROLES}/8e3af657-a8ff-443c-a75c-2fe8c4bcb635"


def credential() -> Resource:
    return Resource(
        tokens.AZURE_FEDERATED_CREDENTIAL,
        {
            "issuer": "https://westus2.oic.prod-aks.azure.com/tenant/cluster/",
            "subject": "system:serviceaccount:karpenter:karpenter",
            "audiences": ["api://AzureADTokenExchange"],
        },
    )


def assignment() -> Resource:
    return Resource(
        tokens.AZURE_ROLE_ASSIGNMENT,
        {"scope": GROUP, "roleDefinitionId": f"{ROLES}/9980e02c-c2be-4d73-94e8-173b1dc7cf3c"},
    )


def cluster() -> Resource:
    return Resource(
        tokens.AKS_CLUSTER,
        {
            "identity": {"type": "UserAssigned"},
            "disableLocalAccounts": True,
            "aadProfile": {"managed": True},
            "oidcIssuerProfile": {"enabled": True},
            "securityProfile": {"workloadIdentity": {"enabled": True}},
        },
    )


def monitored(
    by_identity: object, addon: str = "omsagent", key: str = "useAADAuth", workspace: object = "logs"
) -> Resource:
    config = {"logAnalyticsWorkspaceResourceID": workspace, key: by_identity}
    return cluster().change("addonProfiles", to={addon: {"enabled": True, "config": config}})


CASES = [
    Case(name="one service account", rule=FEDERATION, given=credential()),
    *[
        Case(
            name=f"the subject {subject!r}",
            rule=FEDERATION,
            given=credential().change("subject", to=subject),
            violations=("subject is",),
        )
        for subject in ("", "system:serviceaccount:karpenter:*", "repo:example/app:ref:refs/heads/main")
    ],
    Case(
        name="another audience",
        rule=FEDERATION,
        given=credential().change("audiences", to=["api://AzureADTokenExchange", "example"]),
        violations=("audiences are [api://AzureADTokenExchange, example]",),
    ),
    Case(
        name="no audience", rule=FEDERATION, given=credential().without("audiences"), violations=("audiences are []",)
    ),
    Case(
        name="an issuer without TLS",
        rule=FEDERATION,
        given=credential().change("issuer", to="http://example.com"),
        violations=("issuer is http://example.com",),
    ),
    Case(
        name="the audience of a national cloud",
        rule=FEDERATION,
        given=credential(),
        settings={"audience": "api://AzureADTokenExchangeUSGov"},
        violations=("not [api://AzureADTokenExchangeUSGov]",),
    ),
    Case(
        name="the issuer is unknown, the subject is any",
        rule=FEDERATION,
        given=credential().change("issuer", to=UNKNOWN).without("subject"),
        violations=("subject is not set",),
        unknown="issuer",
    ),
    Case(name="a resource group", rule=SCOPE, given=assignment()),
    Case(
        name="a subnet",
        rule=SCOPE,
        given=assignment().change("scope", to=f"{GROUP}/providers/Microsoft.Network/virtualNetworks/a/subnets/b"),
    ),
    *[
        Case(
            name=f"the scope {scope!r}",
            rule=SCOPE,
            given=assignment().change("scope", to=scope),
            violations=(f"scope is {scope or 'not set'}, which",),
        )
        for scope in (
            "/subscriptions/12345678-1234-1234-1234-123456789012",
            "/",
            "",
            "/providers/Microsoft.Management/managementGroups/all",
        )
    ],
    Case(name="the scope is unknown", rule=SCOPE, given=assignment().change("scope", to=UNKNOWN), unknown="scope"),
    Case(name="a role for one task", rule=PRIVILEGED, given=assignment()),
    *[
        Case(
            name=name,
            rule=PRIVILEGED,
            given=assignment().change("roleDefinitionId", to=f"{ROLES}/{guid}"),
            violations=(f"is that of {name}",),
        )
        for name, guid in (
            ("Owner", "8E3AF657-a8ff-443c-a75c-2fe8c4bcb635"),
            ("Contributor", "b24988ac-6180-42a0-ab88-20f7382dd24c"),
            ("User Access Administrator", "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9"),
            ("Role Based Access Control Administrator", "f58310d9-a9f6-439a-9e8d-f62e7b41a168"),
        )
    ],
    Case(
        name="allowed by name",
        rule=PRIVILEGED,
        given=assignment().change("roleDefinitionId", to=OWNER),
        settings={"allowed": ["Owner"]},
    ),
    Case(
        name="the role is unknown",
        rule=PRIVILEGED,
        given=assignment().change("roleDefinitionId", to=UNKNOWN),
        unknown="roleDefinitionId",
    ),
    Case(name="an identity", rule=MANAGED, given=cluster()),
    Case(
        name="an identity, as Azure gives it back",
        rule=MANAGED,
        given=cluster().change("servicePrincipalProfile", to={"clientId": "msi"}),
    ),
    Case(
        name="a service principal",
        rule=MANAGED,
        given=cluster().change("servicePrincipalProfile", to={"clientId": "0000"}),
        violations=("servicePrincipalProfile.clientId is 0000",),
    ),
    Case(name="no identity", rule=MANAGED, given=cluster().without("identity"), violations=("identity.type is not",)),
    Case(
        name="the principal is unknown, and there is no identity",
        rule=MANAGED,
        given=cluster().change("servicePrincipalProfile", to={"clientId": UNKNOWN}).without("identity"),
        violations=("identity.type is not",),
        unknown="servicePrincipalProfile.clientId",
    ),
    Case(name="off", rule=LOCAL, given=cluster()),
    Case(
        name="on",
        rule=LOCAL,
        given=cluster().change("disableLocalAccounts", to=False),
        violations=("disableLocalAccounts",),
    ),
    Case(
        name="on by default",
        rule=LOCAL,
        given=cluster().without("disableLocalAccounts"),
        violations=("disableLocalAccounts",),
    ),
    Case(name="without Entra", rule=LOCAL, given=cluster().without("aadProfile"), violations=("aadProfile.managed",)),
    Case(
        name="whether they are off is unknown",
        rule=LOCAL,
        given=cluster().change("disableLocalAccounts", to=UNKNOWN),
        unknown="disableLocalAccounts",
    ),
    Case(name="both", rule=WORKLOAD, given=cluster()),
    Case(
        name="no issuer",
        rule=WORKLOAD,
        given=cluster().without("oidcIssuerProfile"),
        violations=("oidcIssuerProfile.enabled",),
    ),
    Case(
        name="no workload identity",
        rule=WORKLOAD,
        given=cluster().without("securityProfile"),
        violations=("securityProfile.workloadIdentity.enabled",),
    ),
    Case(
        name="one is unknown, the other is off",
        rule=WORKLOAD,
        given=cluster().change("oidcIssuerProfile", to=UNKNOWN).without("securityProfile"),
        violations=("securityProfile.workloadIdentity.enabled",),
        unknown="oidcIssuerProfile",
    ),
    Case(name="no monitoring", rule=MONITORING, given=cluster()),
    Case(name="monitoring by an identity", rule=MONITORING, given=monitored("true")),
    Case(name="the workspace is unknown", rule=MONITORING, given=monitored("true", workspace=UNKNOWN)),
    Case(name="as ARM spells it", rule=MONITORING, given=monitored("True", addon="omsAgent", key="useAADAUTH")),
    Case(
        name="monitoring that is off",
        rule=MONITORING,
        given=monitored("false").change("addonProfiles", "omsagent", "enabled", to=False),
    ),
    Case(
        name="monitoring by a key",
        rule=MONITORING,
        given=monitored("false"),
        violations=("addonProfiles.omsagent.config.useAADAuth is false",),
    ),
    Case(
        name="AKS's default",
        rule=MONITORING,
        given=monitored("").without("addonProfiles", "omsagent", "config", "useAADAuth"),
        violations=("addonProfiles.omsagent.config.useAADAuth is not set",),
    ),
    Case(
        name="no configuration",
        rule=MONITORING,
        given=monitored("").without("addonProfiles", "omsagent", "config"),
        violations=("addonProfiles.omsagent.config.useAADAuth is not set",),
    ),
    Case(
        name="unknown monitoring",
        rule=MONITORING,
        given=monitored(UNKNOWN),
        unknown="addonProfiles.omsagent.config.useAADAuth",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
