"""Builds the engine set from pinned Go modules.

Everything goes to the cache folder (`rehearsal.engines.cache_folder`), Go's own caches included. A set is built in
a folder of its own and renamed when it is whole: an interrupted build leaves nothing that looks like a set, and
the next one goes on from what Go's build cache holds. A lock lets one build run at a time. A set is compared with its
manifest (`rehearsal.engines.manifest`) whenever it is asked for.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal.engines import CONTROLLERS, HERE, PULUMI_VERSION, EngineSet, cache_folder, manifest, pulumi_on_path

_GO_WANTED = (1, 26)
_GO_HINT = "Install Go 1.26 or newer (https://go.dev/dl/) and see that `go` is on PATH; then run the command again."
_TOOLCHAIN_HINT = (
    "A go.mod here needs a newer Go than yours, which comes as the module golang.org/toolchain: install that version, "
    "or name a GOPROXY that has it; then run the command again."
)
_SECONDS_BETWEEN_LINES = 15.0
# Engine, and the folder of its go.mod -> the module that its `cmd/controller` comes from.
_CONTROLLERS = {f"karpenter-{cloud}": module for cloud, module in CONTROLLERS.items()}
_FAULTS_SHOWN = 5


class BuildError(Exception):
    """The engines cannot be built; the text says why and what to do."""


@dataclass(frozen=True)
class Build:
    """One `go build`.

    Attributes:
        module: Folder of the go.mod, below this package.
        programs: Name of the engine -> package of its main.
        settings: Link-time variables.
    """

    module: str
    programs: Mapping[str, str]
    settings: Mapping[str, str] = field(default_factory=dict)


def _kubernetes_settings(version: str) -> dict[str, str]:
    # Without these, kubectl and Karpenter cannot parse the server's version.
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version."
    return {f"{package}gitVersion": version, f"{package}gitMajor": major, f"{package}gitMinor": minor}


def builds(kubernetes_version: str, *, pulumi: bool) -> list[Build]:
    """The builds that make a set, in order: one `go build` with many mains keeps all cores busy.

    Args:
        kubernetes_version: For example `v1.36.3`.
        pulumi: Whether Pulumi is built too.
    """
    found = [
        Build(
            "kubernetes",
            {
                "etcd": "go.etcd.io/etcd/server/v3",
                "helm": "helm.sh/helm/v3/cmd/helm",
                "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
                "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
                "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
                "kubectl": "k8s.io/kubernetes/cmd/kubectl",
                "kwok": "sigs.k8s.io/kwok/cmd/kwok",
            },
            _kubernetes_settings(kubernetes_version),
        ),
        *(
            Build(
                f"karpenter-{cloud}",
                {
                    f"karpenter-{cloud}": f"karpstack/engines/karpenter-{cloud}/controller",
                    f"prices-{cloud}": f"karpstack/engines/karpenter-{cloud}/prices",
                },
            )
            for cloud in CONTROLLERS
        ),
    ]
    if pulumi:
        found.append(
            Build(
                "pulumi",
                {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
                {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{PULUMI_VERSION}"},
            )
        )
    return found


def ensure() -> EngineSet:
    """Return the current engine set, building it first when it is missing, and anew when it is damaged.

    Raises:
        ancestors.ExposedError: Others could exchange the cache folder.
        BuildError: Others may write in it, Go is missing or too old, or a build failed.
    """
    engines = EngineSet.current()
    if exposed := manifest.exposure(cache_folder(), engines.root):
        raise BuildError(f"The engines cannot be trusted: {exposed}.")
    if not _faults(engines):
        return engines
    go = Go.find()
    for folder in (cache_folder(), engines.root.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(cache_folder() / "engines.lock"):
        faults = _faults(engines)  # none where another command built it while this one waited
        if faults and engines.complete:
            print("The engines are not as they were built, so they are built anew:")
            print(*(f"  {fault}" for fault in faults[:_FAULTS_SHOWN]), sep="\n")
            if len(faults) > _FAULTS_SHOWN:
                print(f"  and {len(faults) - _FAULTS_SHOWN} more")
        if faults:
            _build(engines, go)
    return engines


def lint() -> None:
    """Run gofmt and go vet on our own Go programs.

    Raises:
        BuildError: One of them complained, or Go is missing.
    """
    go = Go.find()
    unformatted = subprocess.run(["gofmt", "-d", HERE], capture_output=True, text=True, check=True).stdout
    if unformatted:
        raise BuildError(f"gofmt would change:\n{unformatted}")
    with _upstream_mains(go) as flag:
        for name in _CONTROLLERS:
            go.run(name, "vet", flag, "./...", "karpstack/engines/guard")


def _faults(engines: EngineSet) -> list[str]:
    if not engines.complete:
        return [f"{engines.root} is not there"]
    if not engines.program("pulumi").exists():
        return [f"{engines.root} was built without Pulumi, because there was one on PATH, and that has gone"]
    return manifest.faults(engines.root)


def _build(engines: EngineSet, go: Go) -> None:
    started = time.monotonic()
    partial = engines.root.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    own_pulumi = pulumi_on_path()
    print(f"Building the engines with {go.version} into {engines.root} (once; about fifteen minutes on two cores).")
    if own_pulumi:
        print(f"  pulumi: using {own_pulumi}")
    with _upstream_mains(go) as flag:
        for build in builds(go.module_version("kubernetes", "k8s.io/kubernetes"), pulumi=own_pulumi is None):
            go.build(build, partial / "bin", flag)
    for cloud in CONTROLLERS:
        dump = partial / "bin" / f"prices-{cloud}"
        with (partial / f"prices-{cloud}.json").open("w") as output:
            subprocess.run([dump], stdout=output, check=True)
        dump.unlink()
    _copy_charts(partial / "charts", go)
    _install_language_host(partial / "bin")
    manifest.write(partial)
    shutil.rmtree(engines.root, ignore_errors=True)
    partial.rename(engines.root)
    print(f"Engines built in {time.monotonic() - started:.0f} s.")


@contextmanager
def _upstream_mains(go: Go) -> Iterator[str]:
    """The flag of `go` that lays the controllers' mains beside our guards, unchanged, as their modules have them.

    A main package cannot be imported, and a module cannot be added to. See docs/decisions/0014-guarded-controller.md.
    """
    replace = {
        str(HERE / name / "controller" / source.name): str(source)
        for name, module in _CONTROLLERS.items()
        for source in (go.module_folder(name, module) / "cmd" / "controller").glob("*.go")
        if not source.name.endswith("_test.go")
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as overlay:
        json.dump({"Replace": replace}, overlay)
        overlay.flush()
        yield f"-overlay={overlay.name}"


def _copy_charts(folder: Path, go: Go) -> None:
    for cloud in CONTROLLERS:
        name = f"karpenter-{cloud}"
        module = _CONTROLLERS[name]
        charts = go.module_folder(name, module) / "charts"
        # The charts for AWS are marked with the release before in the module; what the registry serves differs in this
        # mark alone. For Azure the mark of the controller's chart stays, and both get it, because they are published
        # together: it trails the module by several releases, so the module's own number would be a guess.
        published = go.module_version(name, module).removeprefix("v")
        version = published if cloud == "aws" else _chart_version(charts / "karpenter")
        for chart in ("karpenter", "karpenter-crd"):
            _copy_chart(charts / chart, folder / f"{chart}-{cloud}", version)
    _copy_chart(
        go.download("charts", "github.com/cilium/cilium") / "install" / "kubernetes" / "cilium", folder / "cilium"
    )


def _chart_version(chart: Path) -> str:
    found = re.search(r"(?m)^version: *(\S+)", (chart / "Chart.yaml").read_text())
    if not found:
        raise BuildError(f"{chart / 'Chart.yaml'} names no version")
    return found[1]


def _copy_chart(source: Path, target: Path, version: str | None = None) -> None:
    # The CRD chart links to the CRDs beside it in the module: what is behind a link is copied.
    shutil.copytree(source, target, symlinks=False, copy_function=shutil.copyfile)
    if version:
        description = target / "Chart.yaml"
        text = description.read_text()
        for key in ("version", "appVersion"):
            text = re.sub(rf"(?m)^{key}:.*$", f"{key}: {version}", text)
        description.write_text(text)


def _install_language_host(folder: Path) -> None:
    # Pulumi looks for the language host beside its own binary first. The rehearsal's environment says which
    # checkout and interpreter serve, because all checkouts share the cache.
    host = folder / "pulumi-language-python"
    host.write_text(
        "#!/bin/sh\n"
        'exec "${KARPSTACK_PYTHON:?set by python -m rehearsal env}" -m rehearsal.attachment.language_host "$@"\n'
    )
    host.chmod(0o755)


@dataclass(frozen=True)
class Go:
    """The Go toolchain, with its caches inside our cache folder.

    Attributes:
        program: Path of the installed `go`.
        version: Its version, as `go1.26.8`; a go.mod may have a newer one used.
    """

    program: str
    version: str

    @classmethod
    def find(cls) -> Go:
        """The `go` on PATH.

        Raises:
            BuildError: There is none, or it is too old.
        """
        program = shutil.which("go")
        if not program:
            raise BuildError(f"Go is needed to build the engines and there is no `go` on PATH. {_GO_HINT}")
        version = subprocess.run([program, "env", "GOVERSION"], capture_output=True, text=True, cwd="/").stdout.strip()
        match = re.match(r"go(\d+)\.(\d+)", version)
        if not match or tuple(int(part) for part in match.groups()) < _GO_WANTED:
            raise BuildError(
                f"Go 1.26 or newer is needed to build the engines; {program} is {version or 'not working'}. {_GO_HINT}"
            )
        return cls(program, version)

    @property
    def environment(self) -> dict[str, str]:
        """What `go` is run with."""
        go = cache_folder() / "go"
        # -modcacherw: what we cached, the user can delete like any other folder.
        # Whoever builds for another machine elsewhere has no use for that here.
        ours = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH")}
        return {
            **ours,
            "GOMODCACHE": str(go / "modules"),
            "GOCACHE": str(go / "builds"),
            "GOPATH": str(go),
            "GOFLAGS": "-modcacherw -buildvcs=false -trimpath",
            "GOWORK": "off",
            # A go.mod that wants a newer Go than the installed one gets it as a module, even if the machine says local.
            "GOTOOLCHAIN": "auto",
            "CGO_ENABLED": "0",
        }

    def run(self, module: str, *arguments: str) -> str:
        """What a `go` command writes in the folder of one of our go.mod files, such as `kubernetes`.

        Raises:
            BuildError: It failed.
        """
        result = subprocess.run(
            [self.program, *arguments], cwd=HERE / module, env=self.environment, capture_output=True, text=True
        )
        if result.returncode:
            hint = f"\n{_TOOLCHAIN_HINT}" if "toolchain" in result.stderr else ""
            raise BuildError(f"`go {' '.join(arguments)}` failed in {HERE / module}:\n{result.stderr.strip()}{hint}")
        return result.stdout

    def module_version(self, module: str, path: str) -> str:
        """Version of a module that `module` is built with."""
        return self.run(module, "list", "-m", "-f", "{{.Version}}", path).strip()

    def module_folder(self, module: str, path: str) -> Path:
        """Folder of a module that `module` is built with; downloaded, and checked against go.sum, if need be."""
        return Path(json.loads(self.run(module, "mod", "download", "-json", path))["Dir"])

    def download(self, module: str, path: str) -> Path:
        """Download one module, checked against go.sum; its folder."""
        text = (HERE / module / "go.mod").read_text()
        version = re.search(rf"^require {re.escape(path)} (\S+)$", text, re.MULTILINE)
        if not version:
            raise BuildError(f"{HERE / module / 'go.mod'} does not require {path}")
        return Path(json.loads(self.run(module, "mod", "download", "-json", f"{path}@{version[1]}"))["Dir"])

    def build(self, build: Build, folder: Path, *flags: str) -> None:
        """Run one `go build` with progress and put the programs under their engines' names."""
        out = folder / f".{build.module}"
        out.mkdir()
        link = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in build.settings.items())])
        packages = list(build.programs.values())
        print(f"  {', '.join(build.programs)}: downloading modules", flush=True)
        total = len(self.run(build.module, "list", "-deps", *flags, *packages).splitlines())
        process = subprocess.Popen(
            [self.program, "build", "-v", *flags, "-ldflags", link, "-o", f"{out}/", *packages],
            cwd=HERE / build.module,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            lines = _show_progress(process, build, total)
            code = process.wait()
        except BaseException:  # Ctrl-C included: no compiler goes on behind the user's back
            process.terminate()
            process.wait()
            raise
        if code:
            raise BuildError(f"`go build` failed in {HERE / build.module}:\n" + "\n".join(lines[-30:]))
        for name, package in build.programs.items():
            (out / _file_name(package)).rename(folder / name)
        out.rmdir()


def _file_name(package: str) -> str:
    """The name that `go build` gives the program of a package: its last element that is not a major version."""
    parts = package.split("/")
    return parts[-2] if re.fullmatch(r"v\d+", parts[-1]) else parts[-1]


def _show_progress(process: subprocess.Popen[str], build: Build, total: int) -> list[str]:
    lines: list[str] = []
    reader = threading.Thread(target=_collect, args=(process, lines), daemon=True)
    reader.start()
    started = shown = time.monotonic()
    terminal = sys.stdout.isatty()
    while reader.is_alive():
        reader.join(0.5)
        now = time.monotonic()
        text = f"  {build.module}: {len(lines)} of up to {total} packages compiled, {now - started:.0f} s"
        if terminal:
            print(f"\r{text}", end="", flush=True)
        elif now - shown > _SECONDS_BETWEEN_LINES:
            shown = now
            print(text, flush=True)
    print(
        ("\r" if terminal else "") + f"  {build.module}: done in {time.monotonic() - started:.0f} s" + " " * 30,
        flush=True,
    )
    return lines


def _collect(process: subprocess.Popen[str], lines: list[str]) -> None:
    for line in process.stderr or ():
        lines.append(line.rstrip())


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another command is building the engines; waiting for it ({path}).", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
