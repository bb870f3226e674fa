"""The functions of azure-native: look-ups of what exists, who asks, and a cluster's credentials."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from karpstack.rehearsal.attachment.package import Invoke
from karpstack.rehearsal.attachment.resource import Properties, RefusedError
from karpstack.rehearsal.azure.clusters.resources import ManagedCluster
from karpstack.rehearsal.azure.identity.entra import DEPLOYER
from karpstack.rehearsal.azure.resource import AzureResource, Session, refusals

#: Whoever deploys, as `az login` shows a person: the client is Azure's own command line.
CLIENT_ID: Final = "04b07795-8ddb-461a-bbee-02f9e1bf7b46"


def invokes(session: Session, types: tuple[type[AzureResource], ...]) -> dict[str, Invoke]:
    """The functions by token: `get<Type>` of each type, getClientConfig and the credentials of clusters."""

    def client_config(arguments: Properties) -> Properties:
        _takes("getClientConfig", arguments, set())
        subscription = session.subscription
        return {
            "clientId": CLIENT_ID,
            "objectId": DEPLOYER,
            "subscriptionId": subscription.subscription_id,
            "tenantId": subscription.tenant_id,
        }

    def credentials(function: str, action: str) -> Invoke:
        def answer(arguments: Properties) -> Properties:
            _takes(
                function,
                arguments,
                {"resourceGroupName", "resourceName", "serverFqdn", "format"},
                {"resourceGroupName", "resourceName"},
            )
            cluster = ManagedCluster(session)
            with refusals():
                return session.subscription.arm.post(cluster.resource_id(arguments), action, cluster.default_version)

        return answer

    functions: dict[str, Invoke] = {"azure-native:authorization:getClientConfig": client_config}
    for who in ("User", "Admin"):
        function = f"listManagedCluster{who}Credentials"
        functions[f"azure-native:containerservice:{function}"] = credentials(function, f"listCluster{who}Credential")
    for kind in types:
        module, name = kind.token.rsplit(":", 1)
        functions[f"{module}:get{name}"] = _getter(kind(session), f"get{name}")
    return functions


def _getter(resource: AzureResource, function: str) -> Invoke:
    def answer(arguments: Properties) -> Properties:
        parameters = set(resource.parameters)
        _takes(function, arguments, parameters, parameters)
        id = resource.resource_id(arguments)
        with refusals():
            body = resource.arm.get(id, resource.default_version)
        return {**resource.answered(body), "id": body["id"]}

    return answer


def _takes(function: str, arguments: Mapping[str, object], known: Set[str], required: Set[str] = frozenset()) -> None:
    # Pulumi's SDK sends arguments that are not set as null.
    given = {name for name, value in arguments.items() if value is not None}
    if unknown := sorted(given - known):
        raise RefusedError(f"{function}: the rehearsal does not know the argument {', '.join(unknown)}; leave it out")
    if missing := sorted(required - given):
        raise RefusedError(f"{function}: the argument {', '.join(missing)} is missing; set it")
