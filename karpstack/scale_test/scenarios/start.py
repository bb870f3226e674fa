"""A scenario to begin with: one that runs, with comments on what else could be said."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from karpstack.text.files import check_output
from karpstack.text.files import write as write_file
from karpstack.text.shown import value, visible

from .formats import DnsLabel
from .reference import SCHEMA
from .scenario import ScenarioError

_START = """\
# yaml-language-server: $schema={schema}
---
# All keys are explained in docs/reference/scenarios.md.
#   karpstack scenario check {folder}                              # is it right?
#   karpstack run eks --scenario-dir {folder}              # in a rehearsal
name: {name} # the same as the file's, without .yml
description: Two pods get one node; when the label of its NodePool changes, another one replaces it
labels: [mine]
stacks: [eks] # or aks-nap, aks-self-hosted

nodePools:
  {name}: # a NodePool's spec, in Karpenter's own words
    template:
      metadata:
        labels: {{version: "1"}}
      spec:
        nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
        requirements:
          - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
        startupTaints:
          - {{key: node.cilium.io/agent-not-ready, value: "true", effect: NoExecute}}
    disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: 10s}} # short: the story waits for it

workload:
  namespace: {name} # made for the story, and removed with all that is in it

workloads:
  web:
    # kind: StatefulSet # or DaemonSet, Job; a Deployment if it is left out
    requests: {{cpu: 500m}}
    nodeSelector: {{karpenter.sh/nodepool: {name}}} # so that no other pool takes the pods
    # tolerations, affinity, topologySpread, priorityClassName, doNotDisrupt, volumes

# manifests: # plain Kubernetes: a PodDisruptionBudget, a PriorityClass, or workloads as you have them
#   - apiVersion: policy/v1
#     kind: PodDisruptionBudget
#     metadata: {{name: web}}
#     spec: {{maxUnavailable: 1, selector: {{matchLabels: {{karpstack.io/workload: web}}}}}}

steps: # each does one thing, and ends when the cluster is at rest, or too late
  - scale: {{web: 2}}
    expect:
      within: 180 # seconds
      nodes: 1
      workloads:
        web: {{ready: 2, nodePools: {{{name}: 2}}}}

  - patchNodePool: {{name: {name}, spec: {{template: {{metadata: {{labels: {{version: "2"}}}}}}}}}}
    expect:
      within: 300
      nodeLabels: {{version: ["2"]}}
      replacement: {{cheaper: false}}
      disrupted: [web]
"""


def write(folder: Path, name: str) -> Path:
    """Write a scenario to begin with; its file.

    Raises:
        ScenarioError: It cannot have that name.
        OutputError: Something of that name is there.
        OSError: The file cannot be written.
    """
    try:
        TypeAdapter(DnsLabel).validate_python(name)
    except ValidationError as error:
        why = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise ScenarioError(f"name: {value(name)}: {why}") from error
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yml"
    schema = os.path.relpath(SCHEMA, folder)
    check_output(path, "scenario")
    shown = visible(folder).replace("\n", r"\n")  # in a comment, which ends with the line
    write_file(path, _START.format(name=name, folder=shown, schema=schema))
    return path
