"""Ansible module: save the cluster's objects when a story has failed. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from scale_test.recording.snapshot import kinds, save

DOCUMENTATION = r"""
module: karpstack_evidence
short_description: Save the objects of a story as they are, a YAML file a kind
description:
  - Saves Deployments and pods of the workload's namespace, NodePools, NodeClaims, nodes, node classes and events.
  - Reads no Secret and no ConfigMap, and hides user data and values of environment variables.
  - Fails if a kind cannot be read, after it has saved the others.
author: karpstack
options:
  folder:
    description: Where to; it is made.
    type: path
    required: true
  namespace:
    description: The workload's namespace.
    type: str
    required: true
  node_class:
    description: The cloud's kind of node class, with C(kind) and C(path), as M(karpstack_scenarios) returns it.
    type: dict
    required: true
  kubeconfig:
    description: The kubeconfig to connect with; the usual one if not given.
    type: path
"""

EXAMPLES = r"""
- name: Save evidence
  karpstack_evidence:
    folder: build/rehearsal/eks/evidence/eks-cheapest-fit
    namespace: other
    node_class: "{{ stack_chosen.node_class }}"
"""

RETURN = r"""
missing:
  description: What could not be read, with the reason.
  type: list
  returned: always
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "namespace": {"type": "str", "required": True},
            "node_class": {"type": "dict", "required": True},
            "kubeconfig": {"type": "path"},
        }
    )
    given, node_class = module.params, module.params["node_class"]
    missing = save(
        Path(given["folder"]),
        kinds(given["namespace"], node_class["kind"], node_class["path"]),
        Path(given["kubeconfig"]) if given["kubeconfig"] else None,
    )
    if missing:
        module.fail_json(msg=f"not all could be saved: {'; '.join(missing)}", missing=missing)
    module.exit_json(changed=True, missing=[])


if __name__ == "__main__":
    main()
