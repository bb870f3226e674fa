"""Ansible module: make the objects of a story, or remove them. See DOCUMENTATION."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.acting.ownership import TakenError, make, remove

DOCUMENTATION = r"""
module: karpstack_objects
short_description: Make the Namespace, what is deployed and the NodePools of a story, or remove them
description:
  - Creates and never changes what is there. Fails where something of that name is, and says whose it seems to be.
  - Removes what has the labels of O(scenarios), and waits until it is gone. What has not stays, with a warning.
author: karpstack
options:
  state:
    description: Make the objects, or remove them.
    type: str
    choices: [present, absent]
    default: present
  objects:
    description: The objects, as M(karpstack_scenarios) returns them.
    type: list
    elements: dict
    required: true
  scenarios:
    description: Names of the scenarios whose objects are removed.
    type: list
    elements: str
  made:
    description: RV(made) of when they were made. Another object of the same name stays.
    type: dict
    default: {}
  timeout:
    description: Seconds to wait at most until they are gone.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Make what the story needs
  karpstack_objects:
    objects: "{{ story_objects }}"
  register: story_made

- name: Remove it
  karpstack_objects:
    state: absent
    objects: "{{ story_objects }}"
    scenarios: [eks-cheapest-fit]
    made: "{{ story_made.made }}"
"""

RETURN = r"""
made:
  description: Kind and name of each object that was made, with its uid; also if the module fails.
  type: dict
  returned: when state is present
removed:
  description: Kind and name of each object that was removed.
  type: list
  returned: when state is absent
kept:
  description: What has a name of the story's and is not its own, a sentence each.
  type: list
  returned: when state is absent
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "objects": {"type": "list", "elements": "dict", "required": True},
            "scenarios": {"type": "list", "elements": "str"},
            "made": {"type": "dict", "default": {}},
            "timeout": {"type": "int", "default": 300},
        },
        required_if=[("state", "absent", ["scenarios"])],
    )
    given = module.params
    made: dict[str, str] = {}
    try:
        if given["state"] == "present":
            made.update(make(Cluster(), given["objects"]))
            module.exit_json(changed=True, made=made)
        done = remove(Cluster(), given["objects"], given["scenarios"], given["made"], given["timeout"])
    except (ClusterError, TakenError, ConfigException) as error:
        module.fail_json(msg=str(error), made=made)
    for sentence in done.kept:
        module.warn(sentence)
    module.exit_json(changed=bool(done.removed), removed=done.removed, kept=done.kept)


if __name__ == "__main__":
    main()
