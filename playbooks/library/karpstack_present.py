"""Ansible module: whether the names of stories are free, and what older runs left. See DOCUMENTATION."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.acting.ownership import TakenError, check_names, leftovers

DOCUMENTATION = r"""
module: karpstack_present
short_description: Whether the names of stories are free, and what older runs left
description:
  - Changes nothing. Fails where a Namespace, a NodePool or anything else in no namespace of that name is on the cluster
    and is no scale test's, and names all of them.
author: karpstack
options:
  objects:
    description: The objects of all stories, as M(karpstack_scenarios) returns them.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Refuse to overwrite what is not the scale test's own
  karpstack_present:
    objects: "{{ stack_chosen.objects.values() | flatten }}"
  register: stack_present
"""

RETURN = r"""
leftovers:
  description: Names of the scenarios that have objects on the cluster.
  type: list
  elements: str
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"objects": {"type": "list", "elements": "dict", "required": True}}, supports_check_mode=True
    )
    try:
        cluster = Cluster()
        check_names(cluster, module.params["objects"])
        left = leftovers(cluster)
    except (ClusterError, TakenError, ConfigException) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, leftovers=left)


if __name__ == "__main__":
    main()
