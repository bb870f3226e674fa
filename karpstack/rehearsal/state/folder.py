"""Where one rehearsed stack keeps everything that it writes: its state folder.

Names paths only; it starts nothing and reads nothing. Everything that a rehearsal writes lies below
`StackFolder.root`, so that removing the folder removes the rehearsal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class _Below:
    """A path below the root of a state folder; `{stack}` in it is the stack's name."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, folder: StackFolder, owner: type[StackFolder]) -> Path:
        return folder.root / self._path.format(stack=folder.stack)


@dataclass(frozen=True)
class StackFolder:
    """The paths of one stack's rehearsal.

    Attributes:
        stack: Name of the Pulumi stack, for example `eks`.
        root: The folder itself, by default `.rehearsal/<stack>` in the checkout.
    """

    stack: str
    root: Path

    #: File that says that the folder is ours (see `karpstack.rehearsal.state.ownership`).
    marker = _Below("karpstack-rehearsal")
    #: File that each command on the stack locks (see `karpstack.rehearsal.session.lock`); it is never removed.
    lock = _Below("lock")
    #: Record of the process that holds the lock; it means nothing while the file is not locked.
    holder = _Below("lock-holder.json")
    #: The page that tells cluster time (see `karpstack.karpenter.clock`).
    clock = _Below("clock")
    #: Folder with one `<engine>.log` for each engine.
    logs = _Below("logs")
    #: Folder for the temporary files of the commands on the stack.
    temporary = _Below("tmp")
    #: Folder with one record for each running child process (see `karpstack.rehearsal.host.processes`).
    processes = _Below("processes")
    #: Folder of the control plane's data: etcd, certificates, keys and tokens.
    control_plane = _Below("control-plane")
    #: Administrator's kubeconfig of the rehearsed cluster, once it exists.
    kubeconfig = _Below("kubeconfig")
    #: What the clouds' plugins (`cluster/plugins`) hand out, once the rehearsed cluster knows who made it.
    deployer_token = _Below("deployer-token")
    #: Folder of the Karpenter controller: its tokens and its kubeconfig.
    controller = _Below("controller")
    #: File with the URL of the running controller's metrics; absent while none runs.
    metrics_address = _Below("controller/metrics-address")
    #: File with the secret for the metrics.
    metrics_token = _Below("controller/metrics-token")
    #: Folder with Pulumi's home, its file backend and the stack's own copy of the configuration.
    pulumi = _Below("pulumi")
    #: Pulumi's copy of `Pulumi.<stack>.yaml`.
    stack_configuration = _Below("pulumi/Pulumi.{stack}.yaml")
    #: Pulumi's copy of another configuration of the stack, to which a what-if updates it.
    changed_configuration = _Below("pulumi/change/Pulumi.{stack}.yaml")
    #: What Pulumi's engine said of the last update, for its review.
    update_events = _Below("pulumi/update.jsonl")
    #: Events of the preview that checks a program which is not karpstack's (see `session.other_program`).
    preview_events = _Below("pulumi/preview.jsonl")
    #: What that preview needs and the rehearsal does not have, while providers record it.
    survey = _Below("pulumi/survey.jsonl")
    #: Outputs of the stack of such a program, for a scale test.
    described_outputs = _Below("pulumi/outputs.json")
    #: File that says which configuration of the policy pack judged the last update.
    judge = _Below("pulumi/judge")
    #: File with the path of the stack file that the user edits (see `karpstack.rehearsal.session.pulumi_by_hand`).
    edited = _Below("pulumi/edited-stack-file")
    #: File with the path of the folder of the program.
    program = _Below("pulumi/program")
    #: What the controller asked of the cloud's access control (see `karpstack.rehearsal.rights`).
    rights = _Below("rights.json")
    #: Names of the scenarios that ran while the rights were recorded.
    recorded_scenarios = _Below("recorded-scenarios.json")
    #: What the running daemon tells about itself (pid, ports), as JSON.
    run_file = _Below("daemon.json")

    def create(self) -> StackFolder:
        """Make the folders, readable by their owner alone: they hold keys and tokens. See `ownership`."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.logs, self.processes, self.control_plane, self.pulumi):
            folder.mkdir(exist_ok=True, mode=0o700)
        return self
