"""Ansible module: take the snapshot of a cluster. See DOCUMENTATION."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from karpstack.snapshot.anonymise import anonymised, hash_key
from karpstack.snapshot.cluster import ClusterError, take
from karpstack.snapshot.conversion import convert
from karpstack.snapshot.reading import SnapshotError, check_output, write
from karpstack.snapshot.shown import headline
from karpstack.snapshot.unschedulable import unschedulable
from karpstack.text.shown import visible
from playbooks.documentation import argument_spec

DOCUMENTATION = r"""
module: karpstack_snapshot
short_description: Write what scheduling and disruption of a cluster's pods depend on into one file
description:
  - Reads lists of a cluster, or files, and changes nothing but the file, which is not written in check mode.
  - No Secret and no ConfigMap is read. Images, commands, environment and annotations are left out; RV(left_out) says
    what else.
author: karpstack
options:
  out:
    description: The file; compressed by gzip if its name ends in C(.gz).
    type: path
    required: true
  exports:
    description:
      - Files of C(kubectl get -o json), or folders of them, to read instead of a cluster. One file of kubereplay's or
        a trace of SimKube's is read too.
    type: list
    elements: path
    default: []
  kubeconfig:
    description: The kubeconfig to connect with; the usual one if not given.
    type: path
  context:
    description: Its context; the current one if not given.
    type: str
  anonymise:
    description: Write hashes instead of the names that people gave.
    type: bool
    default: false
  key:
    description: A text from which the key of the hashes is made. If not given it is another one each time.
    type: str
"""

EXAMPLES = r"""
- name: Take a snapshot
  karpstack_snapshot:
    out: snapshot.json
    anonymise: true
"""

RETURN = r"""
summary:
  description: One sentence on what is in the file.
  type: str
  returned: success
left_out:
  description: What is not, each with C(what), C(count) and C(why).
  type: list
  returned: success
notes:
  description: Workloads whose pods nothing can ever schedule, a sentence each.
  type: list
  returned: success
"""


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=argument_spec(DOCUMENTATION, key={"no_log": True}), supports_check_mode=True)
    given = module.params
    try:
        check_output(Path(given["out"]), "out:")
        taken = (
            convert([Path(path) for path in given["exports"]])
            if given["exports"]
            else take(Path(given["kubeconfig"]) if given["kubeconfig"] else None, given["context"])
        )
        if given["anonymise"]:
            taken = anonymised(taken, hash_key(given["key"]))
        if not module.check_mode:
            write(taken, Path(given["out"]))
    except (ClusterError, SnapshotError) as error:
        module.fail_json(msg=visible(error))
    except OSError as error:
        module.fail_json(msg=f"out: {visible(given['out'])}: cannot be written ({error.strerror}); give another file")
    module.exit_json(
        changed=True,
        summary=headline(taken),
        left_out=[one.model_dump(mode="json") for one in taken.left_out],
        notes=unschedulable(taken),
    )


if __name__ == "__main__":
    main()
