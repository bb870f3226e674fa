"""A stack to look at, in the simulated subscription on the wire, and what the checks find."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from azure.core.credentials import AccessToken

from karpstack.components import settings
from karpstack.components.settings.raw import structured
from karpstack.preflight.azure.asking import Azure
from karpstack.preflight.azure.credentials import Login
from karpstack.preflight.azure.subject import Subject, subject
from karpstack.preflight.finding import Finding
from karpstack.preflight.stack import State
from karpstack.rehearsal.azure.identity.access import DENY_TYPE, EVERYONE
from karpstack.rehearsal.azure.identity.entra import DEPLOYER, MANAGEMENT, Principal
from karpstack.rehearsal.azure.identity.roles import Role
from tests.unit.example_stack import example
from tests.unit.rehearsal.azure_world import LOCKS, SCOPE, World

Check = Callable[[Subject], Iterable[Finding]]
GROUP = f"{SCOPE}/resourceGroups/karpstack-aks"
NODES = f"{SCOPE}/resourceGroups/karpstack-aks-nodes"


class Token:
    """A principal's token of the simulated directory, as azure-identity's credentials give one."""

    def __init__(self, world: World, principal: Principal | None = None) -> None:
        directory = world.azure.directory
        self._text = directory.issue(principal or directory.add(Principal(DEPLOYER, "User", "whoever deploys")))

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._text, int(time.time()) + 3600)


def asked(world: World, principal: Principal | None = None) -> Azure:
    """The subscription, asked by whoever deploys, or by a principal."""
    login = Login(Token(world, principal), "a test", world.azure.proxy, f"{MANAGEMENT}/.default")
    return Azure(world.azure.subscription_id, login)


def looked_at(
    world: World,
    stack: str = "aks-self-hosted",
    *,
    principal: Principal | None = None,
    state: State | None = None,
    **changes: Any,
) -> Subject:
    """The example stack with changes, of which only the shape is checked."""
    return subject(asked(world, principal), unjudged(stack, **changes), state or State())


def unjudged(stack: str, **changes: Any) -> settings.AksSettings:
    """An AKS example, of which only the shape is checked."""
    values, problems = structured(example(stack, **changes))
    assert not problems
    named = {key.removeprefix("karpstack:"): value for key, value in values.items()}
    return settings.AksSettings.model_validate(named, by_alias=True, by_name=False)


def somebody(world: World, *roles: Role, scope: str = SCOPE) -> Principal:
    """Somebody with some roles."""
    principal = world.azure.directory.add(Principal(str(uuid.uuid4()), "User", "somebody"))
    for role in roles:
        world.grant(scope, principal.object_id, role, kind="User")
    return principal


def made(*resources: tuple[str, str]) -> State:
    """What Pulumi has made."""
    return State(frozenset(resources))


def lock(world: World, scope: str, level: str, name: str = "keep") -> None:
    world.arm.put(f"{scope}/providers/Microsoft.Authorization/locks/{name}", LOCKS, {"properties": {"level": level}})


def deny(world: World, *actions: str, scope: str = SCOPE, excluded: str = "") -> None:
    """A deny assignment for everyone, as Azure makes them."""
    world.azure.keep(
        f"{scope}/providers/{DENY_TYPE}/{uuid.uuid4()}",
        DENY_TYPE,
        {
            "properties": {
                "denyAssignmentName": "managed by somebody",
                "permissions": [{"actions": list(actions), "notActions": []}],
                "scope": scope,
                "principals": [{"id": EVERYONE, "type": "SystemDefined"}],
                "excludePrincipals": [{"id": excluded, "type": "User"}] if excluded else [],
            }
        },
    )


def found(check: Check, seen: Subject) -> list[tuple[str, str]]:
    """Severity and what was found."""
    return [(finding.severity, finding.what) for finding in check(seen)]


def one(check: Check, seen: Subject) -> Finding:
    """The only finding."""
    (finding,) = check(seen)
    return finding
