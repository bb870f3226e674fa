"""The deployer's policy, and role: every resource of the stack is in it, and the page shows it as it is."""

from __future__ import annotations

import json

import pytest

from karpstack.components import aks, eks
from karpstack.components.naming import EksNames
from karpstack.components.settings import AksSettings
from karpstack.preflight.aws.deployer import Scope, deploying, policy
from karpstack.preflight.azure import deployer as azure
from karpstack.preflight.azure.deployer import role
from tests.unit import example_stack
from tests.unit.mock_engine import SUBSCRIPTION, Deployment, deploy

PAGE = example_stack.ROOT / "docs" / "reference" / "deployer-policy.md"
SCOPE = Scope(partition="aws", region="us-east-1", account="123456789012", names=EksNames("karpstack-eks"))
HEAD = """\
# The deployer's policy

<!-- Written by `make goldens` from preflight/aws/grants.yaml and preflight/azure/grants.yaml; do not edit. -->

[On AWS](#on-aws), [on Azure](#on-azure).

## On AWS

What whoever runs `pulumi up`, `pulumi destroy` and the looks before them must be allowed: for the example, in
us-east-1 of the account 123456789012. Names follow `karpstack:name`; the actions are those with which Pulumi's AWS
provider creates, reads, changes and deletes the stack's resources. It is longer than one managed policy may be (6,144
characters). `karpstack preflight rights eks` prints it for a stack's own names and choices, in documents that IAM
takes; `--account ID` where no credentials say it. `karpstack preflight eks` asks IAM's simulator whether the caller has
it ([what it looks at](../how-to/preflight.md)).

`FirstCluster` and `FirstNodeGroup` are needed once in an account, `OpenIdConnectProvider` with
`karpenter.identity: irsa` only, what begins with `FlowLogs`, and `PassFlowLogsRole`, with
`network.flowLogRetentionDays` only, `Endpoints` and `EndpointNames` with `network.endpoints` only, `InstanceProfile`
where nothing leads out only, `Network` without `network.vpcId` only, `PrivateAccess` with
`cluster.privateAccessCidrs` only, `LookBefore` and `WhatMayIDo` for the looks only. On a cluster that is there
(`cluster.existing`) it is another list, and much less: `preflight rights` prints that.

"""
ON_AZURE = """
## On Azure

Of the built-in roles, on the subscription: Owner; or Contributor, and with it Role Based Access Control Administrator
or User Access Administrator, because the stack gives its identities roles. That is more than it takes. The custom role
below is what it takes, with the actions with which Pulumi's provider creates, reads, changes and deletes the stack's
resources, and those of the looks before: `az role definition create --role-definition role.json`, then assign it on the
subscription. On the resource group alone it is too little: the stack makes that group, and AKS another one beside it.

Who may assign roles may give themselves any. To narrow that, assign it with a condition: only the roles Network
Contributor, Virtual Machine Contributor, Managed Identity Operator, Azure Kubernetes Service RBAC Cluster Admin and,
with a private DNS zone of yours, Private DNS Zone Contributor; AcrPull with `addons.registryIds`, Key Vault Secrets
User with `addons.vaultIds`, for which `roleAssignments` are needed on the registries and vaults.
`karpstack preflight rights aks-nap` prints role, assignments and this condition for what a stack has.

`register/action` is needed once in a subscription, `federatedIdentityCredentials` with `mode: self-hosted` only,
`listClusterAdminCredential/action` with `cluster.localAccounts: true` only, `Microsoft.Insights` and
`Microsoft.OperationalInsights` with `cluster.logWorkspaceId`, `addons.logRetentionDays` or `addons.containerInsights`
only, the latter's `sharedKeys/action` on the workspace, and with `addons.containerInsights` its `sharedKeys/read`, of
which Azure makes sure at each update of the cluster; `Microsoft.Monitor` and `dataCollectionEndpoints` with
`addons.prometheus` only, `dataCollectionRules` with one of the two. With `network.subnetId`
the network's own `write` and `delete` are not needed, and `join/action` and `roleAssignments` are needed on that
subnet, those of node classes and the API server's; with a zone of yours `roleAssignments` on the zone and the network.
`natGateways` and `publicIPAddresses` with `network.outboundType` only: all of them for a gateway of the stack's own,
and otherwise their `read` and that of `routeTables`. With `cluster.deployerRole: existing` whoever deploys must have
Azure Kubernetes Service RBAC Cluster Admin already. `karpstack preflight aks-nap` asks Azure whether the caller has
it all ([what it looks at](../how-to/preflight.md)).

"""


@pytest.mark.parametrize(("identity", "nat_gateways"), [("pod-identity", "single"), ("irsa", "none")])
def test_every_resource_of_the_stack_is_in_it(identity: str, nat_gateways: str) -> None:
    admin = "arn:aws:iam::210987654321:role/platform-admin"
    stack = example_stack.eks(
        karpenter__identity=identity,
        cluster__admins=[admin],
        network__flowLogRetentionDays=30,
        network__natGateways=nat_gateways,
        network__endpoints=True,
        images={"mirrors": dict.fromkeys(("quay.io", "public.ecr.aws", "registry.k8s.io"), "registry.example.com")},
        cluster__privateAccessCidrs=["10.9.0.0/16"],
        addons={"ebsCsi": True, "metricsServer": True, "loadBalancerController": True},
    )
    made = {each.type for each in deploy(lambda: eks.Environment("eks", stack)).resources.values()}
    covered = {kind for grant in deploying(SCOPE) for kind in grant.needed_by}
    missing = {kind for kind in made if kind.startswith("aws:")} - covered
    assert not missing, f"name the actions that these need in karpstack/preflight/aws/grants.yaml: {missing}"
    assert "aws:eks/cluster:Cluster" in made


def test_every_role_and_policy_of_the_stack_is_named_in_it() -> None:
    stack = example_stack.eks(addons={"ebsCsi": True, "loadBalancerController": True})
    scope = Scope(partition="aws", region="us-east-1", account="123456789012", names=EksNames(stack.name))
    named = {arn for grant in deploying(scope) for arn in grant.resources}
    made = deploy(lambda: eks.Environment("eks", stack))
    for kind, path in (("aws:iam/role:Role", "role"), ("aws:iam/policy:Policy", "policy")):
        for each in made.of(kind):
            assert scope.arn("iam", f"{path}/{each.inputs['name']}") in named, each.name


def test_no_statement_allows_everything() -> None:
    for statement in policy(SCOPE)["Statement"]:
        assert statement["Effect"] == "Allow"
        assert all("*" not in action and ":" in action for action in statement["Action"]), statement["Sid"]


@pytest.mark.parametrize("stack", ["aks-nap", "aks-self-hosted"])
def test_every_resource_of_azures_stacks_is_in_its_role(stack: str) -> None:
    workspace = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.OperationalInsights/workspaces/a"
    own = {"logRetentionDays": 30, "containerInsights": True, "prometheus": True}
    made = {
        each.type
        for changes in ({"cluster__logWorkspaceId": workspace}, {"addons": own})
        for each in deployed(example_stack.aks(stack, **changes)).resources.values()
    }
    covered = {kind for grant in azure.deploying() for kind in grant.needed_by}
    missing = {kind for kind in made if kind.startswith("azure-native:")} - covered
    assert not missing, f"name the actions that these need in karpstack/preflight/azure/grants.yaml: {missing}"
    assert "azure-native:containerservice:ManagedCluster" in made


def deployed(settings: AksSettings) -> Deployment:
    return deploy(lambda: aks.Environment("aks", settings))


def test_azures_role_allows_no_pattern() -> None:
    assert all("*" not in action and action.count("/") > 1 for action in role(SUBSCRIPTION)["Actions"])
    assert all(action.endswith("/read") for action in azure.grant_for("looking").actions)


def test_nothing_is_changed_for_a_look() -> None:
    looks = next(one for one in policy(SCOPE)["Statement"] if one["Sid"] == "LookBefore")
    verbs = {action.partition(":")[2] for action in looks["Action"]}
    assert all(verb.startswith(("Describe", "Get", "List", "Simulate")) for verb in verbs)


def test_the_page_shows_it(request: pytest.FixtureRequest) -> None:
    written = (
        f"{HEAD}```json\n{json.dumps(policy(SCOPE), indent=2)}\n```\n"
        f"{ON_AZURE}```json\n{json.dumps(role(SUBSCRIPTION), indent=2)}\n```\n"
    )
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written)
    assert PAGE.read_text() == written, f"{PAGE} differs; see --update-goldens"
