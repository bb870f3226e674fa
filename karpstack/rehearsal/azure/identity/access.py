"""Who may do what: a call is authorised against the stored role assignments.

A principal may do what any role allows that is assigned to it at a scope which holds the resource, some time after it
was assigned, and that no deny assignment holds. Simplified: no conditions, no membership in groups. Reads of the
subscription as a whole (`wire/lookups`) need a role anywhere in it only, as Azure lets whoever can see a subscription
read them. What principals ask on the wire is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

from karpstack.karpenter import clock
from karpstack.rehearsal.azure.arm.errors import ArmError, refused
from karpstack.rehearsal.azure.arm.identifiers import ResourceId, within
from karpstack.rehearsal.azure.arm.store import Resource, Store
from karpstack.rehearsal.azure.identity import roles
from karpstack.rehearsal.azure.identity.entra import DEPLOYER, Directory
from karpstack.rehearsal.azure.identity.roles import Role
from karpstack.rehearsal.recorded_rights import ANY_ROLE, Question, Recorder

ASSIGNMENT_TYPE = "Microsoft.Authorization/roleAssignments"
DENY_TYPE = "Microsoft.Authorization/denyAssignments"
#: Of deny assignments: whoever asks.
EVERYONE = "00000000-0000-0000-0000-000000000000"
#: Where an assignment keeps the monotonic time from which it counts; one that Azure made itself counts at once.
EFFECTIVE = "effective"


class Access:
    """Decides over the assignments of a store."""

    def __init__(self, store: Store, directory: Directory, uses: Recorder | None = None) -> None:
        """`uses` records what is required and read; nothing does when it is None."""
        self._store = store
        self._directory = directory
        self._uses = uses or Recorder("azure")

    def allows(self, principal: str, action: str, scope: str) -> bool:
        """Whether a principal may perform a control-plane action on a scope."""
        return not self._denied(principal, action, scope) and (
            self._directory.is_deployer(principal)
            or any(role.allows(action) for assigned, role in self._granted(principal) if within(scope, assigned))
        )

    def permissions(self, principal: str, scope: str) -> list[Role]:
        """The roles that a principal has at a scope, those of whoever deploys included."""
        if self._directory.is_deployer(principal):
            return [roles.OWNER]
        return [role for assigned, role in self._granted(principal) if within(scope, assigned)]

    def allows_data(self, principal: str, action: str, scope: str) -> bool:
        """Whether a principal may perform a data-plane action on a scope."""
        return any(role.allows_data(action) for assigned, role in self._granted(principal) if within(scope, assigned))

    def sees(self, principal: str, subscription: str) -> bool:
        """Whether a principal has any role in a subscription."""
        return self._directory.is_deployer(principal) or any(
            within(assigned, f"/subscriptions/{subscription}") or within(f"/subscriptions/{subscription}", assigned)
            for assigned, _ in self._granted(principal)
        )

    def require(self, principal: str, action: str, scope: str) -> None:
        """Refuse with `AuthorizationFailed` what a principal may not do."""
        if not self._asked(principal, Question(action, scope), self.allows(principal, action, scope)):
            raise self._failure(principal, action, scope)

    def reads(self, principal: str, resource_type: str, scope: str) -> bool:
        """Whether a principal may read a resource; a query leaves out what it may not."""
        action = f"{resource_type}/read"
        return self.allows(principal, action, scope) and self._asked(principal, Question(action, scope), True)

    def require_subscription(self, principal: str, action: str, subscription: str) -> None:
        """Refuse a read of the subscription to a principal that has no role in it."""
        scope = f"/subscriptions/{subscription}"
        if not self._asked(principal, Question(action, scope, ANY_ROLE), self.sees(principal, subscription)):
            raise self._failure(principal, action, scope)

    def require_linked(self, principal: str, action: str, scope: str, linked: str, target: str) -> None:
        """Refuse with `LinkedAuthorizationFailed` a write that needs an action on another resource."""
        if not self._asked(principal, Question(linked, target), self.allows(principal, linked, target)):
            raise self.linked_failure(principal, action, scope, linked, target)

    def linked_failure(self, principal: str, action: str, scope: str, linked: str, target: str) -> ArmError:
        """The refusal of `require_linked`."""
        return refused(
            "LinkedAuthorizationFailed",
            client=self._client(principal),
            object=principal,
            action=action,
            scope=scope,
            linked=linked,
            target=target,
        )

    def _denied(self, principal: str, action: str, scope: str) -> bool:
        who = (principal.lower() or DEPLOYER, EVERYONE)
        return any(
            within(scope, str(deny.properties["scope"]))
            and any(
                roles.matches(one["actions"], one.get("notActions", ()), action)
                for one in deny.properties["permissions"]
            )
            and any(one["id"].lower() in who for one in deny.properties["principals"])
            and not any(one["id"].lower() in who for one in deny.properties.get("excludePrincipals", ()))
            for deny in self._store.of_type(DENY_TYPE)
        )

    def _failure(self, principal: str, action: str, scope: str) -> ArmError:
        client = self._client(principal)
        return refused("AuthorizationFailed", client=client, object=principal, action=action, scope=scope)

    def _asked(self, principal: str, question: Question, allowed: bool) -> bool:
        """Record a question and its answer, which is given back; whoever deploys is not in question."""
        if self._directory.is_deployer(principal):
            return allowed
        known = self._directory.principal(principal)
        assignments = {
            f"{role.name} on {scope}": {
                "role": role.name,
                "scope": scope,
                "actions": role.actions,
                "notActions": role.not_actions,
            }
            for scope, role in self._granted(principal)
        }
        self._uses.heard(known.name if known else principal, question, assignments, allowed=allowed)
        return allowed

    def _granted(self, principal: str) -> Iterator[tuple[str, Role]]:
        for assignment in self._store.of_type(ASSIGNMENT_TYPE):
            if (
                str(assignment.properties["principalId"]).lower() == principal.lower()
                and assignment.private.get(EFFECTIVE, 0.0) <= clock.monotonic()
            ):
                role = roles.find(str(assignment.properties["roleDefinitionId"]))
                if role:
                    yield _scope(assignment), role

    def _client(self, principal: str) -> str:
        known = self._directory.principal(principal)
        return (known.client_id if known else "") or principal


def _scope(assignment: Resource) -> str:
    return ResourceId.parse(assignment.id.text).scope
