"""Ansible module: wait until a cluster with a workload has settled. See DOCUMENTATION."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.judging.live import Live
from scale_test.recording.process import RecorderError
from scale_test.recording.timeline import TimelineError, Writer
from whatif import recheck
from whatif.settling import wait

DOCUMENTATION = r"""
module: karpstack_settled
short_description: Wait until pods and nodes of a what-if have come to rest, and mark it in the timeline
description:
  - Rest is when nothing has moved for longer than each NodePool's consolidateAfter and Karpenter's own pauses.
  - Meanwhile Karpenter is asked to look once more, by a pod in the namespace default that is made and removed.
  - What has not settled in time is no failure; the timeline says so.
author: karpstack
options:
  timeline:
    description: The file that the recorder writes.
    type: path
    required: true
  patience:
    description: Seconds to wait at most.
    type: int
    required: true
  progress:
    description: A file to which it is appended, every now and then, how far it is.
    type: path
  phase:
    description: What is marked.
    type: str
    choices: [base-settled, change-settled]
    required: true
"""

EXAMPLES = r"""
- name: Wait until the base has settled
  karpstack_settled:
    timeline: build/timeline.jsonl
    patience: 1800
    progress: build/progress.txt
    phase: base-settled
"""

RETURN = r"""
seconds:
  description: How long it took until nothing moved any more.
  type: float
  returned: success
quiet:
  description: For how many seconds nothing had moved then.
  type: float
  returned: success
needed:
  description: How many of them are rest.
  type: float
  returned: success
left:
  description: What was under way still.
  type: list
  returned: success
gave_up:
  description: Why it was not waited for any longer; empty where it has settled.
  type: str
  returned: success
"""

_WHAT = {"base-settled": "The base settles", "change-settled": "The change settles"}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "timeline": {"type": "path", "required": True},
            "patience": {"type": "int", "required": True},
            "progress": {"type": "path"},
            "phase": {"type": "str", "choices": ["base-settled", "change-settled"], "required": True},
        }
    )
    timeline, phase, progress = Path(module.params["timeline"]), module.params["phase"], module.params["progress"]

    def tell(said: str) -> None:
        if progress:
            with Path(progress).open("a") as file:
                file.write(f"{_WHAT[phase]}, {said}\n")

    try:
        settled = wait(Live(timeline), module.params["patience"], partial(recheck.ask, Cluster()), tell)
    except (RecorderError, TimelineError, ClusterError, ConfigException) as error:
        module.fail_json(msg=str(error))
    content: dict[str, object] = {"seconds": settled.seconds, "quiet": settled.quiet, "needed": settled.needed}
    content |= {"left": settled.left} if settled.left else {}
    content |= {"gaveUp": settled.gave_up} if settled.gave_up else {}
    with Writer(timeline) as writer:
        writer.write("PHASE", phase=phase, **content)
    module.exit_json(changed=False, **asdict(settled))


if __name__ == "__main__":
    main()
