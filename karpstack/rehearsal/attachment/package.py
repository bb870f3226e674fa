"""A provider package as the server serves it: its configuration, and what each configured instance offers.

Knows no gRPC.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from karpstack.rehearsal.attachment.resource import Properties, RefusedError, Resource

Invoke = Callable[[Properties], Properties]


@dataclass(frozen=True)
class Provider:
    """One configured provider instance.

    Attributes:
        resources: The resource types that it knows.
        invokes: Functions by token, for example `aws:index/getRegion:getRegion`: arguments to results.
        fallback: Finds the resource for a token that is not in `resources`; None when there is none.
    """

    resources: Sequence[Resource] = ()
    invokes: Mapping[str, Invoke] = field(default_factory=dict)
    fallback: Callable[[str], Resource | None] = lambda token: None

    def resource(self, token: str) -> Resource:
        """The resource of a type.

        Raises:
            RefusedError: The stand-in does not know the type; the text says which it knows.
        """
        found = next((resource for resource in self.resources if resource.token == token), None)
        found = found or self.fallback(token)
        if found is None:
            known = ", ".join(sorted(resource.token for resource in self.resources)) or "none"
            raise RefusedError(
                f"the rehearsal has no stand-in for {token}, so this resource cannot be rehearsed; it knows {known}"
            )
        return found


#: Makes a provider instance of its configuration; the event is set when the deployment is cancelled, and waits
#: must end then. Raises RefusedError for a configuration that the cloud refuses.
Configure = Callable[[Properties, threading.Event], Provider]


@dataclass(frozen=True)
class Configuration:
    """What a package's provider takes as configuration.

    Attributes:
        names: The properties that the stand-in knows; others are refused by name.
        configure: Makes a provider instance.
        replaces: Names of the properties whose change from the first configuration to the second means another
            cloud or cluster, so that every resource of the instance must be replaced.
    """

    names: frozenset[str]
    configure: Configure
    replaces: Callable[[Properties, Properties], list[str]] = lambda old, new: []
