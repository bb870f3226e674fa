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
    def logs(self) -> Path:
        """Folder with one `<engine>.log` an engine."""
        return self.root / "logs"

    @property
    def processes(self) -> Path:
        """Folder with one record a running child process (see `rehearsal.processes`)."""
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
    def run_file(self) -> Path:
        """What the running daemon tells about itself (pid, ports), as JSON."""
        return self.root / "daemon.json"

    def create(self) -> StackFolder:
        """Make the folders, readable by their owner alone: they hold keys and tokens."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.logs, self.processes, self.control_plane, self.pulumi):
            folder.mkdir(exist_ok=True, mode=0o700)
        return self
