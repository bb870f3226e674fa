"""Ansible module: load the workload of a snapshot into a cluster, or remove it. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.acting.ownership import TakenError, make, remove
from snapshot.objects import objects
from snapshot.portability import Place
from snapshot.reading import SnapshotError, load
from snapshot.unevictable import unevictable
from whatif import base_nodes, existing, leftovers, placing
from whatif.labels import LABELS, SCENARIO

DOCUMENTATION = r"""
module: karpstack_workloads
short_description: Make the workload of a snapshot, or remove it
description:
  - Makes what can be scheduled and nothing that could run; creates and never changes what is there.
  - What the cluster runs itself, such as Cilium, is not made again; what the snapshot's pods request beyond it is.
  - Where karpstack_nodes has made nodes of the snapshot, their pods are put on them; then Karpenter may disrupt them.
  - Removes what has the labels of a what-if, whichever its snapshot was, and waits until it is gone.
author: karpstack
options:
  snapshot:
    description: The snapshot, a file.
    type: path
    required: true
  state:
    description: Make the workload, or remove it.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description: Whether pods are put on the nodes that karpstack_nodes has made, or Karpenter chooses theirs.
    type: str
    choices: [as-is, fresh]
    default: fresh
  stack_outputs:
    description: The stack's outputs, which say of which cloud and region the cluster is.
    type: dict
    required: true
  timeout:
    description: Seconds to wait at most until it is gone.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Load the workload
  karpstack_workloads:
    snapshot: examples/snapshots/200-pods.json
    stack_outputs: "{{ stack_outputs }}"
"""

RETURN = r"""
pods:
  description: How many pods the workload has, without those of DaemonSets.
  type: int
  returned: success
placed:
  description: How many of them were put on the node that they had in the snapshot.
  type: int
  returned: success
left_out:
  description: What of the snapshot is not loaded, a sentence each.
  type: list
  returned: success
unevictable:
  description: Workloads whose pods more than one PodDisruptionBudget selects, a sentence each.
  type: list
  returned: success
others:
  description: Nodes of NodePools, and pods, CPUs and bytes of memory of the pods on them that are not the workload's.
  type: dict
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "snapshot": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "nodes": {"type": "str", "choices": ["as-is", "fresh"], "default": "fresh"},
            "stack_outputs": {"type": "dict", "required": True},
            "timeout": {"type": "int", "default": 300},
        }
    )
    outputs = module.params["stack_outputs"]
    try:
        snapshot, passed_over = load(Path(module.params["snapshot"]))
        place = Place(str(outputs.get("cloud", "")), str(outputs.get("region", "")))
        cluster = Cluster()
        if module.params["state"] == "absent":
            placing.forget(cluster)
            existing.remove(cluster)
            made_before = leftovers.workload(cluster, objects(snapshot, LABELS, place).objects)
            done = remove(cluster, made_before, [SCENARIO], {}, module.params["timeout"])
            module.exit_json(
                changed=bool(done.removed), pods=0, placed=0, left_out=done.kept, unevictable=[], others={}
            )
        loaded = objects(snapshot, LABELS, place, existing.existing(cluster))
        placed = placing.Placed(0, 0)
        if standing := base_nodes.standing(cluster) if module.params["nodes"] == "as-is" else {}:
            with placing.held(cluster):
                made = dict(make(cluster, loaded.objects, leftovers.OTHERWISE))
                placed = placing.place(cluster, loaded.workloads, base_nodes.managed(cluster, snapshot) | standing)
            base_nodes.let_go(cluster)
        else:
            made = dict(make(cluster, loaded.objects, leftovers.OTHERWISE))
        others = existing.load(cluster)
    except (ClusterError, ConfigException, SnapshotError, TakenError) as error:
        module.fail_json(msg=str(error))
    counted = (workload for workload in loaded.workloads.values() if workload.controller.kind != "DaemonSet")
    pods = sum(workload.replicas for workload in counted)
    notes = [*passed_over, *loaded.notes]
    if placed.without_room:
        notes.append(
            f"{placed.without_room} pods had no room on the node that they were on, which has a little less here; the "
            "scheduler chose another"
        )
    module.exit_json(
        changed=bool(made),
        pods=pods,
        placed=placed.pods,
        left_out=notes,
        unevictable=unevictable(snapshot),
        others=others,
    )


if __name__ == "__main__":
    main()
