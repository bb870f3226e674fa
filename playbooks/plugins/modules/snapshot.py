"""Ansible module: take the snapshot of a cluster. See DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: snapshot
short_description: Write what scheduling and disruption of a cluster's pods depend on into one file
description:
  - Reads lists of objects from a cluster, or from files. Nothing in the cluster is changed.
  - Secrets and ConfigMaps are not read. Images, commands, environment and annotations are left out. RV(left_out) lists
    what else is left out.
author: karpstack (@karpstack)
version_added: 0.1.0
requirements:
  - karpstack[scale-test], in the Python that runs the module
attributes:
  check_mode:
    description: The cluster or the files are read. The snapshot is not written.
    support: full
options:
  out:
    description: The file to write. It is compressed with gzip if its name ends in C(.gz).
    type: path
    required: true
  exports:
    description: Files of C(kubectl get -o json), or folders of such files, to read instead of a cluster. One file of
      kubereplay or one trace of SimKube is read as well.
    type: list
    elements: path
    default: []
  kubeconfig:
    description: The cluster's kubeconfig. Default is the file in E(KUBECONFIG), then C(~/.kube/config).
    type: path
  context:
    description: The kubeconfig's context. Default is the current context.
    type: str
  anonymise:
    description: Whether to write hashes instead of names that people gave.
    type: bool
    default: false
  key:
    description: The text from which the key of the hashes is made. By default it is random, so that each snapshot has
      other hashes.
    type: str
"""

EXAMPLES = r"""
- name: Take a snapshot
  karpstack.scale_test.snapshot:
    out: snapshot.json
    anonymise: true
"""

RETURN = r"""
summary:
  description: The content of the snapshot in one sentence.
  type: str
  returned: success
left_out:
  description: What the snapshot lacks, each with C(what), C(count) and C(why).
  type: list
  elements: dict
  returned: success
notes:
  description: A sentence for each workload whose pods can never be scheduled.
  type: list
  elements: str
  returned: success
"""

from ..module_utils.shell import run


def main() -> None:
    """Run the module."""
    run(DOCUMENTATION, "snapshot.snapshot", key={"no_log": True})


if __name__ == "__main__":
    main()
