"""How long the simulated parts of a rehearsal take, in seconds.

These are the only figures of a rehearsal that are chosen and not measured; reports mark them as simulated.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

_PREFIX = "REHEARSAL_"


@dataclass(frozen=True)
class Timing:
    """Simulated durations in seconds.

    Attributes:
        node_boot: From the launch of an instance to its kubelet's registration. A cloud takes 30 to 60 s.
        system_node_boot: The same for the nodes of a managed node group.
        agent_start: From a node's registration to a running Cilium agent.
        deployer_known: From a cluster's creation to its API server's taking the token of who made it. EKS needs
            seconds, now and then a minute; on AKS the role takes up to five minutes.
        association_known: From the creation of a pod identity association to its being known where pods are admitted.
            EKS needs 5 to 10 s.
        role_effective: From a role's assignment to its taking effect. Azure takes seconds or minutes, it says up to an
            hour.
        condition: How long a condition of an object is waited for at most, whatever the program allows: nothing here
            takes as long as in a cloud.
        last_log_lines: From the deletion of an EKS cluster to its last log lines. EKS needs seconds to minutes.
        spot_notice: From the warning of a spot interruption to the end of the instance. AWS gives 120 s.
    """

    node_boot: float = 5.0
    system_node_boot: float = 0.2
    agent_start: float = 0.2
    deployer_known: float = 0.2
    association_known: float = 2.0
    role_effective: float = 0.2
    condition: float = 60.0
    last_log_lines: float = 2.0
    spot_notice: float = 15.0

    @classmethod
    def from_environment(cls) -> Timing:
        """Read overrides such as `REHEARSAL_NODE_BOOT=30`.

        Raises:
            ValueError: A value is not a number of seconds of at least 0.
        """
        values: dict[str, float] = {}
        for field in fields(cls):
            key = _PREFIX + field.name.upper()
            text = os.environ.get(key)
            if text is None:
                continue
            try:
                seconds = float(text)
            except ValueError:
                seconds = -1.0
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"{key}={text!r} is not a number of seconds; set it to 0 or more, for example 30")
            values[field.name] = seconds
        return cls(**values)
