"""Ansible module: let days of the cluster's time go by. See DOCUMENTATION."""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from kubernetes.config import ConfigException

from karpenter import clock
from scale_test.acting.cluster import Cluster, ClusterError
from scale_test.acting.living import Planned, live
from scale_test.acting.rehearsal_control import RehearsalControl, RehearsalError
from scale_test.judging.live import Live
from scale_test.recording.process import RecorderError
from scale_test.recording.timeline import TimelineError, Writer
from scale_test.scenarios.curve import CurveError, load
from whatif.replica_curve import ReplicaCurve
from whatif.settling import WATCHED

DOCUMENTATION = r"""
module: karpstack_live
short_description: Let days of a rehearsed cluster's time go by, and mark in the timeline when they began and ended
description:
  - Time in which nothing moves is skipped, so that a week takes minutes. A real cluster cannot do that.
author: karpstack
options:
  timeline:
    description: The file that the recorder writes.
    type: path
    required: true
  seconds:
    description: How much of the cluster's time goes by.
    type: int
    required: true
  curve:
    description: A file with a daily curve of replicas.
    type: path
  image_seconds:
    description: After how many seconds, each time, the cloud publishes a newer image of nodes; 0 for never.
    type: int
    default: 0
  progress:
    description: A file to which it is appended, every now and then, how far it is.
    type: path
"""

EXAMPLES = r"""
- name: Let a week go by
  karpstack_live:
    timeline: build/timeline.jsonl
    seconds: 604800
    curve: examples/curves/office-hours.yml
"""

RETURN = r"""
real_seconds:
  description: How long it took.
  type: float
  returned: success
skipped_seconds:
  description: How much of the cluster's time was skipped.
  type: int
  returned: success
skips:
  description: In how many jumps.
  type: int
  returned: success
"""

_REHEARSAL = "KARPSTACK_REHEARSAL_URL"


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "timeline": {"type": "path", "required": True},
            "seconds": {"type": "int", "required": True},
            "curve": {"type": "path"},
            "image_seconds": {"type": "int", "default": 0},
            "progress": {"type": "path"},
        }
    )
    given = module.params
    timeline, progress, url = Path(given["timeline"]), given["progress"], os.environ.get(_REHEARSAL, "")
    if not url:
        module.fail_json(
            msg=f"{_REHEARSAL} is not set, so there is no clock that could run ahead; a week can only be rehearsed: "
            "python -m rehearsal whatif STACK --base .. --for 7d"
        )

    def tell(said: str) -> None:
        if progress:
            with Path(progress).open("a") as file:
                file.write(f"The cluster lives, {said}\n")

    control = RehearsalControl(url)
    begin = clock.utcnow()
    end = begin + timedelta(seconds=given["seconds"])
    try:
        curve = load(Path(given["curve"])) if given["curve"] else None
        replicas = ReplicaCurve(Cluster(), curve) if curve else None
        with Writer(timeline) as writer:

            def publish(_: object) -> None:
                writer.write("PHASE", phase="image-published", images=control.publish_image())

            turns = (begin, *curve.turns(begin, end)) if curve else ()
            planned = [Planned(at, replicas.turn) for at in turns] if replicas else []
            if every := timedelta(seconds=given["image_seconds"]):
                planned += [Planned(begin + count * every, publish) for count in range(1, -(-(end - begin) // every))]
            writer.write("PHASE", phase="life-begins", curve=curve.factors if curve else None)
            lived = live(Live(timeline), end, planned, WATCHED, control.skip, tell)
            writer.write(
                "PHASE",
                phase="life-ends",
                realSeconds=lived.real_seconds,
                skippedSeconds=lived.skipped_seconds,
                skips=lived.skips,
            )
    except (
        ClusterError,
        ConfigException,
        CurveError,
        RecorderError,
        RehearsalError,
        TimelineError,
    ) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=True, **asdict(lived))


if __name__ == "__main__":
    main()
