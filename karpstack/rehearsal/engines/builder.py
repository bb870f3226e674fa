"""Builds the engines from pinned Go modules, part by part.

Everything goes to the cache folder (`rehearsal.engines.cache_folder`), Go's own caches included, which go when all is
built. A part of the set is built in a folder of its own and renamed when it is whole: an interrupted build leaves
nothing that looks like a part, and the next one goes on from what Go's caches hold. A lock lets one build run at a
time. A part is compared with its manifest (`karpstack.rehearsal.engines.manifest`) whenever it is asked for.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from karpstack.rehearsal.engines import (
    CONTROLLERS,
    EARLIER,
    HERE,
    LANGUAGE_HOST,
    LOCK,
    PULUMI_VERSION,
    EngineSet,
    cache_folder,
    manifest,
    native_platform,
    pinned,
    pulumi_on_path,
    required_parts,
)
from karpstack.rehearsal.engines.pulling import pull
from karpstack.rehearsal.engines.reference import VARIABLE, PlaceError, Reference
from karpstack.rehearsal.engines.reference import pinned as pinned_place
from karpstack.text.files import make_ours
from karpstack.text.shown import cut, visible

_GO_WANTED = (1, 26)
_GO_HINT = (
    "Install Go 1.26 or newer (https://go.dev/dl/) and see that `go` is on PATH, or name published engines in "
    "KARPSTACK_ENGINES; then run the command again."
)
_TOOLCHAIN_HINT = (
    "A go.mod here needs a newer Go than yours, which comes as the module golang.org/toolchain: install that version, "
    "or name a GOPROXY that has it; then run the command again."
)
_SECONDS_BETWEEN_LINES = 15.0
_FAULTS_SHOWN = 5
_REASON = 600  # characters
#: Set to anything, Go's modules and build results stay in the cache, so that the next build compiles what changed.
KEEP_BUILDS = "KARPSTACK_KEEP_BUILDS"
_DURATION = "On two cores, this takes 15 to 25 minutes."
# Part -> the cloud whose newest Karpenter it has, and so what is known of that cloud.
_CLOUDS = {f"karpenter-{cloud}": cloud for cloud in CONTROLLERS}
# Part -> the cloud whose Karpenter it has, of whichever release.
_KARPENTERS = _CLOUDS | {part: cloud for newest, cloud in _CLOUDS.items() for part in EARLIER[newest]}
_SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_KUBELET = "k8s.io/kubelet"
# Parts with the same libraries, which are compiled once.
_SHARING = {"kubernetes", "karpenter-azure"}
# Chart of the part `addons` -> its module, and its folder there.
_ADDONS = {
    "aws-ebs-csi-driver": ("github.com/kubernetes-sigs/aws-ebs-csi-driver", "charts/aws-ebs-csi-driver"),
    "aws-load-balancer-controller": (
        "sigs.k8s.io/aws-load-balancer-controller",
        "helm/aws-load-balancer-controller",
    ),
    "metrics-server": ("sigs.k8s.io/metrics-server", "charts/metrics-server"),
}
# Part -> a package of each module of which it is built without a piece (see `_left_out`).
_WITHOUT = {"pulumi": ("gocloud.dev/blob", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi")}
# Cloud -> generated clients, the largest packages of all: they wait for answers, so that optimised ones would not be
# faster.
_GENERATED = {"aws": "github.com/aws/aws-sdk-go-v2/service/..."}

_VET = """\
#!/bin/sh
for last; do :; done
case $last in *.cfg) if grep -q '"VetxOnly": true' "$last"; then exit; fi ;; esac
exec {vet} "$@"
"""


#: Go's variables that decide what is built.
ENVIRONMENT: Mapping[str, str] = {
    # -modcacherw: what we cached, the user can delete like any other folder.
    "GOFLAGS": "-modcacherw -buildvcs=false -trimpath",
    "GOWORK": "off",
    # A go.mod that wants a newer Go than the installed one gets it as a module, even if the machine says local.
    "GOTOOLCHAIN": "auto",
    "CGO_ENABLED": "0",
}


class BuildError(Exception):
    """The engines cannot be built; the text says why and what to do."""


# Programs that keep the cluster's time -> module and folder of upstream's main. kubectl shows ages by it.
_CLOCKED = {
    "etcd": ("go.etcd.io/etcd/server/v3", "."),
    **{program: ("k8s.io/kubernetes", f"cmd/{program}") for program in (*_SERVERS, "kubectl")},
    "kwok": ("sigs.k8s.io/kwok", "cmd/kwok"),
}
# Part -> its programs: name of the engine -> package of its main. Each part is one `go build`: with many mains it
# keeps all cores busy.
PROGRAMS: Mapping[str, Mapping[str, str]] = {
    "kubernetes": {
        "helm": "helm.sh/helm/v3/cmd/helm",
        **{program: f"karpstack/engines/kubernetes/{program}" for program in _CLOCKED},
    },
    **{
        part: {
            part: f"karpstack/engines/{part}/controller",
            f"prices-{cloud}": f"karpstack/engines/{part}/prices",
        }
        for part, cloud in _CLOUDS.items()
    },
    **{part: {part: f"karpstack/engines/{part}/controller"} for newest in _CLOUDS for part in EARLIER[newest]},
    **{part: {server: f"karpstack/engines/{part}/{server}" for server in _SERVERS} for part in EARLIER["kubernetes"]},
    "pulumi": {"pulumi": "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"},
}


def ensure(
    clouds: Collection[str] = tuple(CONTROLLERS),
    earlier: Collection[str] = (),
    *,
    platform: str = "",
    find_go: Callable[[], Go] | None = None,
    build: Callable[[str, Path, Go], None] | None = None,
) -> EngineSet:
    """Return the current engines, with what some clouds need: what is missing or damaged is pulled or built first.

    Args:
        clouds: What will be rehearsed: `aws`, `azure`, or both.
        earlier: Versions of Karpenter and Kubernetes that will be, where these are not the newest.
        platform: One of `PLATFORMS`, to build engines for other machines.
        find_go: Returns the compiler (default: `Go.find`).
        build: Builds a part into a folder (default: with the compiler).

    Raises:
        ancestors.ExposedError: Others could exchange the cache folder.
        BuildError: Others may write in it, or this user may not, Go is missing or too old, or a build failed.
    """
    try:
        return _ensure(clouds, earlier, platform, find_go, build)
    except OSError as error:
        cache, place = cache_folder(), Path(str(error.filename))
        if error.errno != errno.ENOSPC and not (place.is_relative_to(cache) or cache.is_relative_to(place)):
            raise
        raise BuildError(
            f"The engines cannot be written to the cache folder {cache} ({error.strerror}), so there are none to run; "
            "name a folder that you may write, and that has room, in KARPSTACK_CACHE"
        ) from error


def _ensure(
    clouds: Collection[str],
    earlier: Collection[str],
    platform: str,
    find_go: Callable[[], Go] | None,
    build: Callable[[str, Path, Go], None] | None,
) -> EngineSet:
    foreign = platform if platform != native_platform() else ""
    engines = EngineSet.current(foreign)
    parts = [part for part in required_parts(clouds, earlier) if part != "pulumi" or foreign or not pulumi_on_path()]
    for part in parts:
        if exposed := manifest.exposure(cache_folder(), engines.part(part)):
            raise BuildError(f"The engines cannot be trusted: {exposed}.")
    if not any(_faults(engines, part) for part in parts):
        return engines
    place = None if foreign else _published()
    go = None if place else (find_go or Go.find)()
    cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (cache_folder() / "go", engines.root, *(engines.part(part).parent for part in parts)):
        make_ours(folder, 0o700)
    with _lock(cache_folder() / LOCK):
        faults = {part: _faults(engines, part) for part in parts}  # none of what another command built meanwhile
        damages = [fault for part in parts if engines.complete(part) for fault in faults[part]]
        if damages:
            print("The engines are not as they were built, so they are built again:")
            print(*(f"  {fault}" for fault in damages[:_FAULTS_SHOWN]), sep="\n")
            if len(damages) > _FAULTS_SHOWN:
                print(f"  and {len(damages) - _FAULTS_SHOWN} more")
        missing = [part for part in parts if faults[part]]
        if place and missing:
            missing, go = _pull(place, engines, missing, find_go or Go.find)
        if go and missing:
            _build(engines, missing, replace(go, platform=foreign), build or _build_part)
    return engines


def _pull(
    place: Reference, engines: EngineSet, parts: Sequence[str], find_go: Callable[[], Go]
) -> tuple[list[str], Go | None]:
    """Pull parts, and return those that must be compiled, with the compiler."""
    why = visible(cut(pull(place, engines, parts), _REASON))
    left = [part for part in parts if _faults(engines, part)]
    if not left:
        return [], None
    try:
        go = find_go()
    except BuildError as error:
        raise BuildError(f"{', '.join(left)} cannot be pulled: {why}. {error}") from error
    print(f"Not pulled: {', '.join(left)}, because {why}. Compiling instead.", flush=True)
    return left, go


def _published() -> Reference | None:
    """The place to pull engines from; None if they are only built."""
    text = os.environ.get(VARIABLE, "")
    try:
        return pinned_place(text) if text else None
    except PlaceError as error:
        raise BuildError(f"{VARIABLE}: {error}") from error


def lint(*, find_go: Callable[[], Go] | None = None) -> None:
    """Run gofmt on our own Go programs, and see that `go vet` has passed them: no part of theirs is built otherwise.

    Raises:
        BuildError: One of them complained, or Go is missing.
    """
    (find_go or Go.find)()
    unformatted = subprocess.run(["gofmt", "-d", HERE], capture_output=True, text=True, check=True).stdout
    if unformatted:
        raise BuildError(f"gofmt would change:\n{unformatted}")
    if unseen := [part for part in _CLOUDS if not EngineSet.current().complete(part)]:
        raise BuildError(
            f"go vet has not seen {', '.join(unseen)} as it is, because it is not built; run: make engines"
        )


def _faults(engines: EngineSet, part: str) -> list[str]:
    if not engines.complete(part):
        return [f"{engines.part(part)} is not there"]
    return manifest.faults(engines.part(part))


def _build(engines: EngineSet, parts: Sequence[str], go: Go, build: Callable[[str, Path, Go], None]) -> None:
    started = time.monotonic()
    print(f"Building {', '.join(parts)} with {go.version} into {engines.root}, once. {_DURATION}")
    keep = bool(os.environ.get(KEEP_BUILDS))
    largest = [part for part in parts if part in _SHARING][-1:]
    for part in parts:
        root = engines.part(part)
        partial = root.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        (partial / "bin").mkdir(parents=True)
        build(part, partial, go)
        manifest.write(partial)
        shutil.rmtree(root, ignore_errors=True)
        partial.rename(root)
        if part in largest and not keep:
            go.forget("builds")  # of which what follows could use Go's own library alone
    if not keep:
        go.forget("builds", "modules")
    print(f"Engines built in {time.monotonic() - started:.0f} s.")


def _build_part(part: str, folder: Path, go: Go) -> None:
    if part in ("charts", *EARLIER["charts"]):
        cilium = go.download(part, "github.com/cilium/cilium")
        _copy_chart(cilium / "install" / "kubernetes" / "cilium", folder / "charts" / "cilium")
        definitions = cilium / "pkg" / "k8s" / "apis" / "cilium.io" / "client" / "crds" / "v2"
        shutil.copytree(definitions, folder / "crds", ignore=shutil.ignore_patterns("*.go"))
    elif part == "addons":
        for chart, (module, source) in _ADDONS.items():
            _copy_chart(go.download(part, module) / source, folder / "charts" / chart)
        policy = go.download(part, _ADDONS["aws-load-balancer-controller"][0]) / "docs" / "install" / "iam_policy.json"
        shutil.copyfile(policy, folder / policy.name)  # what upstream asks for, to compare
    elif part in _KARPENTERS:
        _build_karpenter(part, folder, go)
    elif part == "pulumi":
        with _left_out(part, go) as modules:
            go.build(part, folder / "bin", modules)
        _install_language_host(folder / "bin")
    else:
        with _upstream_mains(part, go) as overlay:
            go.build(part, folder / "bin", overlay)


def _build_karpenter(part: str, folder: Path, go: Go) -> None:
    cloud = _KARPENTERS[part]
    with _upstream_mains(part, go) as overlay:
        go.build(part, folder / "bin", overlay)
        if part in _CLOUDS and not go.platform:  # what is ours is the same in all
            go.vet(part, overlay, *_compiling(part), "./...", "karpstack/engines/clock", "karpstack/engines/guard")
    module = CONTROLLERS[cloud]
    for chart in ("karpenter", "karpenter-crd"):
        _copy_chart(go.download(part, module) / "charts" / chart, folder / "charts" / chart, pinned(part, module)[1:])
    if part in _CLOUDS:
        _write_facts(part, folder, go)


def _write_facts(part: str, folder: Path, go: Go) -> None:
    """What is known of a cloud from its newest Karpenter: prices, and the kubelet's configuration."""
    cloud = _CLOUDS[part]
    dump = folder / "bin" / f"prices-{cloud}"
    if go.platform:  # its programs do not run here
        if not EngineSet.current().complete(part):
            raise BuildError(
                f"The prices of {part} are those of this machine's, which is not built; run: karpstack engines build"
            )
        shutil.copyfile(EngineSet.current().part(part) / "prices.json", folder / "prices.json")
    else:
        with (folder / "prices.json").open("w") as output:
            subprocess.run([dump], stdout=output, check=True)
    dump.unlink()
    if cloud == "aws":
        types = folder / "kubelet" / pinned(part, _KUBELET) / "types.go"
        types.parent.mkdir(parents=True)
        shutil.copyfile(go.download(part, _KUBELET) / "config" / "v1beta1" / "types.go", types)


@contextmanager
def _upstream_mains(part: str, go: Go) -> Iterator[str]:
    """Give the flag of `go` that lays upstream's mains, unchanged, beside a file of ours that imports our packages.

    A main package cannot be imported, and a module cannot be added to. See docs/decisions/0014-guarded-controller.md
    and 0027-cluster-clock.md.
    """
    replace = {
        str(HERE / part / main / source.name): str(source)
        for main, folders in _mains(part, go).items()
        for folder in folders
        for source in folder.glob("*.go")
        if not source.name.endswith("_test.go")
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as overlay:
        json.dump({"Replace": replace}, overlay)
        overlay.flush()
        yield f"-overlay={overlay.name}"


def _mains(part: str, go: Go) -> dict[str, list[Path]]:
    """Return the folder of each main of a part -> the folders of the files that it is made of."""
    if part in _KARPENTERS:
        cloud = _KARPENTERS[part]
        upstream = go.download(part, CONTROLLERS[cloud]) / "cmd" / "controller"
        return {"controller": [upstream, HERE / f"karpenter-{cloud}" / "controller"]}
    modules = {name: _CLOCKED[name] for name in PROGRAMS[part] if name in _CLOCKED}
    ours = HERE / "clock" / "clocked"
    return {name: [go.download(part, module) / folder, ours] for name, (module, folder) in modules.items()}


@contextmanager
def _left_out(part: str, go: Go) -> Iterator[str]:
    """The flag of `go` that names a go.mod of modules without what no rehearsal reaches.

    The part's folder `_left_out` has what stands in for it, at its import path: a module with a go.mod of its own, a
    package whose file is named `left_out.go`, or the one file of its name. The rest is as the verified modules have it.
    """
    ours = HERE / part / "_left_out"
    alone = [path.parent.relative_to(ours).as_posix() for path in ours.rglob("go.mod")]
    replace = {module: ours / module for module in alone}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number, package in enumerate(_WITHOUT[part]):
            module, source = go.module_of(part, package)
            replace[module] = copy = folder / str(number)
            ignored = shutil.ignore_patterns("*_test.go", "testdata")
            shutil.copytree(source, copy, copy_function=shutil.copyfile, ignore=ignored)
            for file in (ours / module).rglob("*.go"):
                if not any(file.is_relative_to(ours / each) for each in alone):
                    _stand_in(file, copy / file.relative_to(ours / module))
        lines = [f"replace {module} => {path}" for module, path in replace.items() if pinned(part, module)]
        (folder / "go.mod").write_text("\n".join([(HERE / part / "go.mod").read_text(), *lines, ""]))
        shutil.copyfile(HERE / part / "go.sum", folder / "go.sum")
        yield f"-modfile={folder / 'go.mod'}"


def _stand_in(ours: Path, theirs: Path) -> None:
    replaced = list(theirs.parent.glob("*.go")) if ours.name == "left_out.go" else [theirs]
    if not replaced or not all(path.exists() for path in replaced):
        raise BuildError(f"{ours} stands in for what is no longer there; see what upstream has in its place")
    for path in replaced:
        path.unlink()
    shutil.copyfile(ours, theirs)


def _compiling(part: str) -> list[str]:
    """Flags of `go` for the compiler: no tables for debuggers, without which the programs are linked anyway."""
    clients = _GENERATED.get(_KARPENTERS.get(part, ""))
    generated = [f"-gcflags={clients}=-dwarf=false -N -l"] if clients else []
    return ["-gcflags=all=-dwarf=false", *generated]


def build_flags(part: str) -> list[str]:
    """Return the flags of `go build` for a part, but for the files that are laid over upstream's."""
    link = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in _settings(part).items())])
    return [*_compiling(part), "-ldflags", link]


def _settings(part: str) -> dict[str, str]:
    """Link-time variables."""
    if part == "pulumi":
        return {"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{PULUMI_VERSION}"}
    if part in _KARPENTERS:
        return {}
    # Without these, kubectl and Karpenter cannot parse the server's version.
    version = pinned(part, "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version."
    return {f"{package}gitVersion": version, f"{package}gitMajor": major, f"{package}gitMinor": minor}


def _copy_chart(source: Path, target: Path, version: str | None = None) -> None:
    """Copy a chart; with the number of its release, where its module has marked it with another.

    What the registries serve of a Karpenter differs from its module in that number alone: the chart's, and the image's.
    """
    # The CRD chart links to the CRDs beside it in the module: what is behind a link is copied.
    shutil.copytree(source, target, symlinks=False, copy_function=shutil.copyfile)
    if version:
        _mark(target / "Chart.yaml", {"version": version, "appVersion": version})
        if (values := target / "values.yaml").exists():
            _mark(values, {"    tag": version, "    digest": '""'})  # the digest is the other image's


def _mark(file: Path, values: Mapping[str, str]) -> None:
    text = file.read_text()
    for key, value in values.items():
        text = re.sub(rf"(?m)^{key}:.*$", f"{key}: {value}", text)
    file.write_text(text)


def _install_language_host(folder: Path) -> None:
    host = folder / "pulumi-language-python"
    host.write_text(LANGUAGE_HOST)
    host.chmod(0o755)


@dataclass(frozen=True)
class Go:
    """The Go toolchain, with its caches inside our cache folder.

    Attributes:
        program: Path of the installed `go`.
        version: Its version, as `go1.26.8`; a go.mod may have a newer one used.
        platform: One of `PLATFORMS` to build for; empty for this machine's.
    """

    program: str
    version: str
    platform: str = ""

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
        # Whoever builds for another machine elsewhere has no use for that here.
        ours = {name: value for name, value in os.environ.items() if name not in ("GOOS", "GOARCH")}
        system, _, architecture = self.platform.partition("/")
        return {
            **ours,
            **ENVIRONMENT,
            **({"GOOS": system, "GOARCH": architecture} if architecture else {}),
            "GOMODCACHE": str(go / "modules"),
            "GOCACHE": str(go / "builds"),
            "GOPATH": str(go),
        }

    def check_clock(self) -> None:
        """Check that Go's runtime still lets another package set its clock (see the package `clock`).

        Raises:
            BuildError: It does not; without it the clocks of a rehearsal's programs would differ.
        """
        runtime = Path(self.run("kubernetes", "env", "GOROOT").strip()) / "src" / "runtime"
        kept_open = runtime / "badlinkname_linux.go"
        if not kept_open.exists() or "//go:linkname vdsoClockgettimeSym" not in kept_open.read_text():
            raise BuildError(
                f"{runtime} does not keep vdsoClockgettimeSym open any more, by which the engines follow the "
                "cluster's clock; pin the Go that could (`toolchain` in each go.mod), and see "
                "docs/decisions/0027-cluster-clock.md"
            )

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

    def download(self, part: str, module: str) -> Path:
        """Folder of a module that a part is built with; downloaded, and checked against go.sum, if need be."""
        return Path(json.loads(self.run(part, "mod", "download", "-json", f"{module}@{pinned(part, module)}"))["Dir"])

    def module_of(self, part: str, package: str) -> tuple[str, Path]:
        """Path and folder of the module that a package of a part comes from; downloaded and checked likewise."""
        module = json.loads(self.run(part, "list", "-find", "-json=Module", package))["Module"]
        return module["Path"], Path(module["Dir"])

    def vet(self, part: str, *arguments: str) -> None:
        """Run `go vet` on packages of a part, but not first on all that they import, which takes minutes.

        There it would learn which functions pass formats on to others; of Go's own it knows that.

        Raises:
            BuildError: It complained.
        """
        with tempfile.TemporaryDirectory() as folder:
            tool = Path(folder) / "vet"
            # What go asks of a tool of one's own: go help vet, -vettool.
            tool.write_text(_VET.format(vet=shlex.quote(self.run(part, "tool", "-n", "vet").strip())))
            tool.chmod(0o700)
            self.run(part, "vet", f"-vettool={tool}", *arguments)

    def forget(self, *kinds: Literal["builds", "modules"]) -> None:
        """Remove what was compiled, or downloaded."""
        for kind in kinds:
            shutil.rmtree(cache_folder() / "go" / kind, ignore_errors=True)

    def build(self, part: str, folder: Path, *flags: str) -> None:
        """Run the `go build` of a part with progress and put the programs under their engines' names."""
        if part != "pulumi":
            self.check_clock()
        out = folder / f".{part}"
        out.mkdir()
        programs = PROGRAMS[part]
        print(f"  {', '.join(programs)}: downloading modules", flush=True)
        total = len(self.run(part, "list", "-deps", *flags, *programs.values()).splitlines())
        process = subprocess.Popen(
            [
                self.program,
                "build",
                "-v",
                *flags,
                *build_flags(part),
                "-o",
                f"{out}/",
                *programs.values(),
            ],
            cwd=HERE / part,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            lines = _show_progress(process, part, total)
            code = process.wait()
        except BaseException:  # Ctrl-C included: no compiler goes on behind the user's back
            process.terminate()
            process.wait()
            raise
        if code:
            raise BuildError(f"`go build` failed in {HERE / part}:\n" + "\n".join(lines[-30:]))
        for name, package in programs.items():
            (out / _file_name(package)).rename(folder / name)
        out.rmdir()


def _file_name(package: str) -> str:
    """The name that `go build` gives the program of a package: its last element that is not a major version."""
    parts = package.split("/")
    return parts[-2] if re.fullmatch(r"v\d+", parts[-1]) else parts[-1]


def _show_progress(process: subprocess.Popen[str], part: str, total: int) -> list[str]:
    """Tell how far a build is, and return what it said: a line for each package that is compiled."""
    lines: list[str] = []
    started = shown = time.monotonic()
    terminal = sys.stdout.isatty()
    for line in process.stderr or ():
        lines.append(line.rstrip())
        now = time.monotonic()
        if now - shown > (0.5 if terminal else _SECONDS_BETWEEN_LINES):
            shown = now
            text = f"  {part}: {len(lines)} of up to {total} packages compiled, {now - started:.0f} s"
            print(f"\r{text}" if terminal else text, end="" if terminal else "\n", flush=True)
    done = f"  {part}: done in {time.monotonic() - started:.0f} s"
    print(f"\r{done:<80}" if terminal else done, flush=True)
    return lines


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another command is building the engines; waiting for it ({path}).", flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
