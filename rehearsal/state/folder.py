"""Where one rehearsed stack keeps everything that it writes: its state folder.

Names paths only; it starts nothing and reads nothing. Everything that a rehearsal writes lies below
`StackFolder.root`, so that removing the folder removes the rehearsal.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StackFolder:
    """The paths of one stack's rehearsal.

    Attributes:
        stack: Name of the Pulumi stack, for example `eks`.
        root: The folder itself, by default `.rehearsal/<stack>` in the checkout.
    """

    stack: str
    root: Path

    @property
    def marker(self) -> Path:
        """File that says that the folder is ours (see `rehearsal.state.ownership`)."""
        return self.root / "karpstack-rehearsal"

    @property
    def lock(self) -> Path:
        """File that whoever works on the stack has locked (see `rehearsal.session.lock`); it is never removed."""
        return self.root / "lock"

    @property
    def holder(self) -> Path:
        """Record of the process that has it locked; means nothing while it is not locked."""
        return self.root / "lock-holder.json"

    @property
    def clock(self) -> Path:
        """The page that tells cluster time (see `karpenter.clock`)."""
        return self.root / "clock"

    @property
    def logs(self) -> Path:
        """Folder with one `<engine>.log` an engine."""
        return self.root / "logs"

    @property
    def temporary(self) -> Path:
        """Folder for the temporary files of the commands on the stack."""
        return self.root / "tmp"

    @property
    def processes(self) -> Path:
        """Folder with one record a running child process (see `rehearsal.host.processes`)."""
        return self.root / "processes"

    @property
    def control_plane(self) -> Path:
        """Folder of the control plane's data: etcd, certificates, keys and tokens."""
        return self.root / "control-plane"

    @property
    def kubeconfig(self) -> Path:
        """Administrator's kubeconfig of the rehearsed cluster, once it exists."""
        return self.root / "kubeconfig"

    @property
    def deployer_token(self) -> Path:
        """What the clouds' plugins (`cluster/plugins`) hand out, once the rehearsed cluster knows who made it."""
        return self.root / "deployer-token"

    @property
    def controller(self) -> Path:
        """Folder of the Karpenter controller: its tokens and its kubeconfig."""
        return self.root / "controller"

    @property
    def metrics_address(self) -> Path:
        """Where the running controller serves its metrics: a file with the URL, absent while none runs."""
        return self.controller / "metrics-address"

    @property
    def metrics_token(self) -> Path:
        """The secret that it asks for: a file beside the address."""
        return self.controller / "metrics-token"

    @property
    def pulumi(self) -> Path:
        """Folder with Pulumi's home, its file backend and the stack's own copy of the configuration."""
        return self.root / "pulumi"

    @property
    def stack_configuration(self) -> Path:
        """Pulumi's copy of `Pulumi.<stack>.yaml`."""
        return self.pulumi / f"Pulumi.{self.stack}.yaml"

    @property
    def changed_configuration(self) -> Path:
        """Pulumi's copy of another configuration of the stack, to which a what-if updates it."""
        return self.pulumi / "change" / f"Pulumi.{self.stack}.yaml"

    @property
    def update_events(self) -> Path:
        """What Pulumi's engine said of the last update, for its review."""
        return self.pulumi / "update.jsonl"

    @property
    def judge(self) -> Path:
        """File that says which configuration of the policy pack judged the last update."""
        return self.pulumi / "judge"

    @property
    def edited(self) -> Path:
        """File with the path of the stack file that the user edits (see `rehearsal.session.pulumi_by_hand`)."""
        return self.pulumi / "edited-stack-file"

    @property
    def rights(self) -> Path:
        """What the controller asked of the cloud's access control (see `rehearsal.rights`)."""
        return self.root / "rights.json"

    @property
    def recorded_scenarios(self) -> Path:
        """Names of the scenarios that ran while that was recorded."""
        return self.root / "recorded-scenarios.json"

    @property
    def run_file(self) -> Path:
        """What the running daemon tells about itself (pid, ports), as JSON."""
        return self.root / "daemon.json"

    def create(self) -> StackFolder:
        """Make the folders, readable by their owner alone: they hold keys and tokens. See `ownership`."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.logs, self.processes, self.control_plane, self.pulumi):
            folder.mkdir(exist_ok=True, mode=0o700)
        return self
