"""Resource ids: taken apart, compared as ARM compares them (letters' case does not count), and put together."""

from __future__ import annotations

from dataclasses import dataclass

from karpstack.rehearsal.azure.arm.errors import refused

SUBSCRIPTION_TYPE = "Microsoft.Resources/subscriptions"
GROUP_TYPE = "Microsoft.Resources/resourceGroups"


@dataclass(frozen=True)
class ResourceId:
    """One resource id.

    Attributes:
        text: The id as it was written, without a slash at its end.
        type: Its full type as it was written, `Microsoft.Network/virtualNetworks/subnets`.
        names: A name for each part of the type; one for a group or a subscription.
        scope: Id of what it lies in or extends, without `/providers/...`; empty for a subscription.
    """

    text: str
    type: str
    names: tuple[str, ...]
    scope: str

    @classmethod
    def parse(cls, text: str) -> ResourceId:
        """Take an id apart.

        Raises:
            ArmError: It is none: `LinkedInvalidPropertyId`, as ARM answers to a broken id in a property.
        """
        text = "/" + text.strip("/")
        parts = text.split("/")[1:]
        lower = [part.lower() for part in parts]
        if "providers" in lower:
            start = len(lower) - 1 - lower[::-1].index("providers")
            scope, rest = "/" + "/".join(parts[:start]), parts[start + 1 :]
            if len(rest) >= 3 and len(rest) % 2 and all(rest):
                return cls(text, "/".join([rest[0], *rest[1::2]]), tuple(rest[2::2]), "" if scope == "/" else scope)
        elif len(parts) == 2 and lower[0] == "subscriptions" and parts[1]:
            return cls(text, SUBSCRIPTION_TYPE, (parts[1],), "")
        elif len(parts) == 4 and lower[0] == "subscriptions" and lower[2] == "resourcegroups" and parts[3]:
            return cls(text, GROUP_TYPE, (parts[3],), f"/subscriptions/{parts[1]}")
        raise refused("LinkedInvalidPropertyId/id", text=text)

    @property
    def key(self) -> str:
        """The id as a key: ids that differ by case are the same resource."""
        return self.text.lower()

    @property
    def name(self) -> str:
        """The resource's own name, the last part."""
        return self.names[-1]

    @property
    def subscription(self) -> str:
        """Id of the subscription, empty when it lies in none."""
        parts = self.text.split("/")
        return parts[2] if len(parts) > 2 and parts[1].lower() == "subscriptions" else ""

    @property
    def group(self) -> str:
        """Name of the resource group, empty when it lies in none."""
        parts = self.text.split("/")
        return parts[4] if len(parts) > 4 and parts[3].lower() == "resourcegroups" else ""

    @property
    def parent(self) -> str:
        """Id of what must exist before this can: the resource that holds it, or the scope."""
        if len(self.names) > 1:
            return self.text.rsplit("/", 2)[0]
        return self.scope

    def child(self, resource_type: str, name: str) -> str:
        """Id of a child resource."""
        return f"{self.text}/{resource_type}/{name}"


def group_id(subscription: str, group: str) -> str:
    """Id of a resource group."""
    return f"/subscriptions/{subscription}/resourceGroups/{group}"


def resource_id(subscription: str, group: str, resource_type: str, *names: str) -> str:
    """Id of a resource of a type such as `Microsoft.Network/virtualNetworks/subnets`, with a name for each part."""
    namespace, *parts = resource_type.split("/")
    pairs = "/".join(f"{part}/{name}" for part, name in zip(parts, names, strict=True))
    return f"{group_id(subscription, group)}/providers/{namespace}/{pairs}"


def same(one: str, other: str) -> bool:
    """Whether two ids name the same resource."""
    return one.strip("/").lower() == other.strip("/").lower()


def within(identifier: str, scope: str) -> bool:
    """Whether an id lies at or below a scope; `/` is the scope above all subscriptions."""
    inner, outer = identifier.strip("/").lower(), scope.strip("/").lower()
    return not outer or inner == outer or inner.startswith(f"{outer}/")
