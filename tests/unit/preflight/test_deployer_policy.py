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

<!-- Written by `make goldens` from karpstack/preflight/{aws,azure}/grants.yaml; do not edit. -->

[On AWS](#on-aws), [on Azure](#on-azure).

## On AWS

The permissions for `pulumi up`, `pulumi destroy` and the read-only checks before them. This example is for us-east-1
and the account 123456789012; names follow `karpstack:name`. The actions are those with which Pulumi's AWS provider
creates, reads, changes and deletes the stack's resources.

- The policy is longer than one managed policy may be (6,144 characters). `karpstack preflight rights eks` prints it for
  your stack, split into documents that IAM accepts. Without credentials, pass `--account ID`.
- `karpstack preflight eks` asks IAM's simulator whether you have these permissions
  ([what it checks](../how-to/preflight.md)).
- An existing cluster (`cluster.existing`) needs another, shorter list, which `preflight rights` prints.

| statement | needed only |
| --- | --- |
| `FirstCluster`, `FirstNodeGroup` | once in an account |
| `OpenIdConnectProvider` | with `karpenter.identity: irsa` |
| `FlowLogs...`, `PassFlowLogsRole` | with `network.flowLogRetentionDays` |
| `Endpoints`, `EndpointNames` | with `network.endpoints` |
| `InstanceProfile` | without outbound access (`network.natGateways: none`) |
| `Network` | without `network.vpcId` |
| `PrivateAccess` | with `cluster.privateAccessCidrs` |
| `ReadOnlyChecks`, `SimulateOwnPermissions` | for the read-only checks |

"""
ON_AZURE = """
## On Azure

Two built-in choices on the subscription are enough: Owner; or Contributor together with Role Based Access Control
Administrator or User Access Administrator, because the stack assigns roles to its identities. Both allow more than is
needed. The custom role below has only the needed actions: those of Pulumi's provider, and those of the read-only
checks. Create it with `az role definition create --role-definition role.json`, then assign it on the subscription. The
resource group alone is not enough, because the stack creates that group, and AKS creates another one.

A user who may assign roles can give themselves any role. So assign the role with a condition: only Network
Contributor, Virtual Machine Contributor, Managed Identity Operator and Azure Kubernetes Service RBAC Cluster Admin,
and these if your stack needs them: Private DNS Zone Contributor (your private DNS zone), AcrPull
(`addons.registryIds`), Key Vault Secrets User (`addons.vaultIds`). The last two need `roleAssignments` on the
registries and vaults.
`karpstack preflight rights aks-nap` prints role, assignments and this condition for your stack.
`karpstack preflight aks-nap` asks Azure whether you have them ([what it checks](../how-to/preflight.md)).

"""
AFTER_AZURE = """
With `cluster.deployerRole: existing`, the deployer must already have Azure Kubernetes Service RBAC Cluster Admin.

"""
#: Action -> when it is needed.
NEEDED_ON_AZURE = {
    "`register/action`": "once in a subscription",
    "`federatedIdentityCredentials`": "with `mode: self-hosted`",
    "`listClusterAdminCredential/action`": "with `cluster.localAccounts: true`",
    "`Microsoft.Insights`, `Microsoft.OperationalInsights`": (
        "with `cluster.logWorkspaceId`, `addons.logRetentionDays` or `addons.containerInsights`"
    ),
    "`sharedKeys/action` on the workspace": "with one of these three",
    "`sharedKeys/read` on the workspace": "with `addons.containerInsights`; Azure checks it at each update",
    "`Microsoft.Monitor`, `dataCollectionEndpoints`": "with `addons.prometheus`",
    "`dataCollectionRules`": "with `addons.prometheus` or `addons.containerInsights`",
    "the network's `write` and `delete`": "without `network.subnetId`",
    "`join/action`, `roleAssignments` on existing subnets": (
        "with `network.subnetId`: that subnet, those of node classes and of the API server"
    ),
    "`roleAssignments` on the zone and the network": "with your own private DNS zone",
    "`natGateways`, `publicIPAddresses`": (
        "with `network.outboundType`: all actions for the stack's own gateway, otherwise `read`, and `read` of "
        "`routeTables`"
    ),
}


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
    looks = next(one for one in policy(SCOPE)["Statement"] if one["Sid"] == "ReadOnlyChecks")
    verbs = {action.partition(":")[2] for action in looks["Action"]}
    assert all(verb.startswith(("Describe", "Get", "List", "Simulate")) for verb in verbs)


def test_the_page_shows_it(request: pytest.FixtureRequest) -> None:
    written = (
        f"{HEAD}```json\n{json.dumps(policy(SCOPE), indent=2)}\n```\n"
        f"{ON_AZURE}| action | needed only |\n| --- | --- |\n"
        + "".join(f"| {action} | {when} |\n" for action, when in NEEDED_ON_AZURE.items())
        + f"{AFTER_AZURE}```json\n{json.dumps(role(SUBSCRIPTION), indent=2)}\n```\n"
    )
    if request.config.getoption("--update-goldens"):
        PAGE.write_text(written)
    assert PAGE.read_text() == written, f"{PAGE} differs; see --update-goldens"
