"""Ansible module: make the nodes of a snapshot in a cluster, or remove them. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from scale_test.acting.cluster import Cluster, ClusterError
from snapshot.portability import Place
from snapshot.reading import SnapshotError, load
from whatif import base_nodes

DOCUMENTATION = r"""
module: karpstack_nodes
short_description: Make the nodes of a snapshot, or remove them
description:
  - Makes a NodeClaim for each node of a NodePool that the cluster has, and waits until Karpenter has launched it.
  - Nothing disrupts them until karpstack_workloads has put the pods of the snapshot on them.
  - Removes those that are there still, and waits until they are gone.
author: karpstack
options:
  snapshot:
    description: The snapshot, a file.
    type: path
    required: true
  state:
    description: Make the nodes, or remove them.
    type: str
    choices: [present, absent]
    default: present
  stack_outputs:
    description: The stack's outputs, which say of which cloud and region the cluster is.
    type: dict
    required: true
  timeout:
    description: Seconds without another node after which it is not waited for the others; of removal, in all.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Make the nodes that the cluster had
  karpstack_nodes:
    snapshot: examples/snapshots/200-pods.json
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
of:
  description: How many nodes of NodePools the snapshot has.
  type: int
  returned: success
nodes:
  description: How many of them were made, or removed.
  type: int
  returned: success
left_out:
  description: Which nodes of the snapshot were not made and why, a sentence each.
  type: list
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "snapshot": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "stack_outputs": {"type": "dict", "required": True},
            "timeout": {"type": "int", "default": 300},
        }
    )
    outputs, patience = module.params["stack_outputs"], module.params["timeout"]
    try:
        if module.params["state"] == "absent":
            removed = base_nodes.remove(Cluster(), patience)
            module.exit_json(changed=bool(removed), of=0, nodes=removed, left_out=[])
        snapshot = load(Path(module.params["snapshot"])).snapshot
        place = Place(str(outputs.get("cloud", "")), str(outputs.get("region", "")))
        made = base_nodes.make(Cluster(), snapshot, place, patience)
    except (ClusterError, ConfigException, SnapshotError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(made.nodes), of=made.of, nodes=made.nodes, left_out=made.left_out)


if __name__ == "__main__":
    main()
