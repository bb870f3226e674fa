"""The engine builder's decisions: what is built, when, and what it says when it cannot."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from karpstack.rehearsal import engines
from karpstack.rehearsal.engines import HERE, EngineSet, builder, commands
from karpstack.rehearsal.engines import __main__ as program
from karpstack.rehearsal.engines.commands import _clouds

ROOT = HERE.parents[2]
NEWEST = ("kubernetes", "karpenter-azure", "karpenter-aws", "pulumi", "charts", "addons")
EARLIER = {part: newest for newest, parts in engines.EARLIER.items() for part in parts}
PARTS = (*NEWEST, *EARLIER)


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the pins and of our Go sources, to be changed."""
    copy = tmp_path / "pins"
    shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("*.py", "*.md", "__pycache__"))
    for module in (engines, builder):
        monkeypatch.setattr(module, "HERE", copy)
    return copy


def keys() -> dict[str, str]:
    return {part: engines.part_key(part) for part in PARTS}


def test_a_change_of_a_pin_or_of_a_line_of_ours_concerns_its_part_alone(pins: Path) -> None:
    sources = [path for path in sorted(pins.rglob("*")) if path.is_file()]
    names = {"go.mod", "go.sum", "guarded.go", "main.go", "guard.go", "clock.go", "left_out.go"}
    assert names <= {path.name for path in sources}
    for source in sources:
        before = keys()
        source.write_text(source.read_text() + "// changed\n")
        folder, inner, *_ = source.relative_to(pins).parts
        families = {newest: {newest, *parts} for newest, parts in engines.EARLIER.items()}
        concerned = {folder}
        if folder == "guard":
            concerned = families["karpenter-aws"] | families["karpenter-azure"]
        elif folder == "clock":
            concerned = families["karpenter-aws"] | families["karpenter-azure"] | families["kubernetes"]
        elif inner == "controller":
            concerned = families[folder]
        assert {part for part, key in keys().items() if key != before[part]} == concerned


def test_earlier_releases_are_built_where_they_are_asked_for() -> None:
    assert engines.required_parts(["aws", "azure"]) == list(NEWEST)
    for newest, parts in engines.EARLIER.items():
        first, *earlier = engines.releases(newest)
        assert engines.required_parts(["aws", "azure"], [first, "0.1.0"]) == list(NEWEST)
        for version, part in zip(earlier, parts, strict=True):
            assert part.removeprefix(f"{newest}-") == ".".join(version.split(".")[:2])
            assert engines.required_parts(["aws", "azure"], [version]) == [*NEWEST, part]
            assert engines.cache_key(["aws", "azure"], [version]) != engines.cache_key(["aws", "azure"])
    assert engines.required_parts(["azure"], ["1.14.3"]) == engines.required_parts(["azure"]), "another cloud's"


def test_a_stack_file_names_the_releases(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(
        'config:\n  karpstack:cloud: aws\n  karpstack:karpenter:\n    chartVersion: "1.14.3" # why\n'
        "  karpstack:cluster:\n    version: '1.35'\n"
    )
    assert commands._versions([file, tmp_path / "none.yaml"]) == ["1.14.3", "1.35"]


def test_files_that_go_does_not_read_change_no_key(pins: Path) -> None:
    before = keys()
    (pins / "pulumi" / "go.mod.orig").touch()
    assert keys() == before


def test_each_engine_is_looked_for_in_its_part() -> None:
    set_ = EngineSet(Path("/cache"), dict.fromkeys(PARTS, "key"))
    assert set_.program("kubectl") == Path("/cache/kubernetes/key/bin/kubectl")
    assert set_.controller("karpenter-aws", "1.14.3") == Path("/cache/karpenter-aws-1.14/key/bin/karpenter-aws-1.14")
    assert set_.controller("karpenter-azure", "0.1.0") == Path("/cache/karpenter-azure/key/bin/karpenter-azure")
    assert set_.chart("karpenter-aws-1.14", "karpenter") == Path("/cache/karpenter-aws-1.14/key/charts/karpenter")
    assert set_.server("kube-scheduler", "1.35") == Path("/cache/kubernetes-1.35/key/bin/kube-scheduler")
    assert set_.program("karpenter-aws") == Path("/cache/karpenter-aws/key/bin/karpenter-aws")
    assert set_.chart("karpenter-azure", "karpenter-crd") == Path("/cache/karpenter-azure/key/charts/karpenter-crd")
    assert set_.chart("charts", "cilium") == Path("/cache/charts/key/charts/cilium")
    assert set_.prices("azure") == Path("/cache/karpenter-azure/key/prices.json")


def test_every_build_names_a_main_package_that_its_module_pins() -> None:
    assert {*builder.PROGRAMS, "charts", "addons", *engines.EARLIER["charts"]} == set(PARTS)
    for part, programs in builder.PROGRAMS.items():
        text = (HERE / part / "go.mod").read_text()
        for package in programs.values():
            assert package in text or package.startswith(f"karpstack/engines/{part}/")
        names = [builder._file_name(package) for package in programs.values()]
        assert len(names) == len(set(names)), "two programs would be written to one file"


def test_one_go_compiles_all_parts_because_they_share_no_result_otherwise() -> None:
    chosen = {part: [line for line in text.splitlines() if line.startswith("toolchain ")] for part, text in texts()}
    assert len({tuple(lines) for lines in chosen.values()}) == 1, chosen
    assert all(chosen.values()), chosen


def texts() -> list[tuple[str, str]]:
    return [(part, (HERE / part / "go.mod").read_text()) for part in builder.PROGRAMS]


@pytest.mark.parametrize("part", [part for part in PARTS if part.startswith("karpenter-")])
def test_upstreams_main_is_laid_beside_our_guard(tmp_path: Path, part: str) -> None:
    cloud = part.split("-")[1]
    module = engines.CONTROLLERS[cloud]
    for source in (f"{module}/cmd/controller/main.go", f"{module}/cmd/controller/main_test.go"):
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).touch()
    guarded = HERE / f"karpenter-{cloud}" / "controller" / "guarded.go"
    assert {f'_ "karpstack/engines/{ours}"' for ours in ("clock", "guard")} <= {
        line.strip() for line in guarded.read_text().splitlines()
    }
    go = SimpleNamespace(download=lambda _, module: tmp_path / module)
    with builder._upstream_mains(part, go) as flag:  # type: ignore[arg-type]
        overlay = json.loads(Path(flag.removeprefix("-overlay=")).read_text())
    folder = HERE / part / "controller"
    assert builder.PROGRAMS[part][part] == f"karpstack/engines/{part}/controller"
    assert overlay == {
        "Replace": {
            str(folder / "main.go"): str(tmp_path / module / "cmd" / "controller" / "main.go"),
            str(folder / "guarded.go"): str(guarded),
        }
    }


MODULES = {"gocloud.dev", "github.com/pulumi/pulumi/pkg/v3"}


@pytest.fixture
def upstream(tmp_path: Path) -> SimpleNamespace:
    """A toolchain with modules of three packages, one of which has a part left out, and one all."""
    for file in ("left/a.go", "left/b.go", "left/deeper/c.go", "whole/d.go", "piece/e.go", "piece/f.go"):
        for module in MODULES:
            path = tmp_path / "upstream" / module / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("theirs")

    def module_of(part: str, package: str) -> tuple[str, Path]:
        (module,) = (each for each in MODULES if package.startswith(f"{each}/"))
        return module, tmp_path / "upstream" / module

    return SimpleNamespace(module_of=module_of)


def test_pulumi_is_built_without_what_no_rehearsal_reaches(pins: Path, upstream: SimpleNamespace) -> None:
    ours = pins / "pulumi" / "_left_out"
    shutil.rmtree(ours)
    vault = "gocloud.dev/secrets/hashivault"
    for file in (f"{vault}/go.mod", f"{vault}/left_out.go", "gocloud.dev/left/left_out.go", "gocloud.dev/piece/e.go"):
        (ours / file).parent.mkdir(parents=True, exist_ok=True)
        (ours / file).write_text("ours")
    with builder._left_out("pulumi", upstream) as flag:  # type: ignore[arg-type]
        text = Path(flag.removeprefix("-modfile=")).read_text()
        replaced = dict(line.split()[1::2] for line in text.splitlines() if line.startswith("replace "))
        assert replaced[vault] == str(ours / vault)
        copy = Path(replaced["gocloud.dev"])
        found = {path.relative_to(copy).as_posix(): path.read_text() for path in copy.rglob("*.go")}
    theirs = ("left/deeper/c.go", "whole/d.go", "piece/f.go")
    assert found == {"left/left_out.go": "ours", "piece/e.go": "ours", **dict.fromkeys(theirs, "theirs")}
    assert replaced.keys() >= MODULES
    assert not copy.exists()


@pytest.mark.parametrize("file", ["gocloud.dev/moved/left_out.go", "gocloud.dev/piece/moved.go"])
def test_what_upstream_has_moved_is_an_error(pins: Path, upstream: SimpleNamespace, file: str) -> None:
    ours = pins / "pulumi" / "_left_out"
    shutil.rmtree(ours)
    (ours / file).parent.mkdir(parents=True)
    (ours / file).touch()
    with (
        pytest.raises(builder.BuildError, match=rf"{file} stands in for what is no longer there"),
        builder._left_out("pulumi", upstream),  # type: ignore[arg-type]
    ):
        pass


def test_engines_are_built_for_the_machine_that_they_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("GOOS", "plan9"), ("GOARCH", "arm"), ("GOPROXY", "https://proxy.example")):
        monkeypatch.setenv(name, value)
    found = builder.Go("go", "go1.26.0").environment
    assert not {"GOOS", "GOARCH"} & set(found)
    assert found["GOPROXY"] == "https://proxy.example"


def test_a_stack_file_that_cannot_be_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.build([Path("/proc/self/mem")]) == 2  # reading its first page fails
    assert "the stack file /proc/self/mem cannot be read (Input/output error)" in capsys.readouterr().err


class Machine:
    """A cache folder, and the parts that were built into it in order; the compiler is played."""

    def __init__(self, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.built: list[str] = []
        self.results = [cache / "go" / name for name in ("builds", "modules")]
        self.breaks_at = ""
        monkeypatch.setenv("KARPSTACK_CACHE", str(cache))
        monkeypatch.delenv(builder.KEEP_BUILDS, raising=False)
        monkeypatch.setenv("PATH", str(cache / "nothing"))  # no Pulumi of the user's
        self.go: builder.Go = builder.Go("go", "go1.26.1")

    def ensure(self, *clouds: str) -> list[str]:
        """What was built because some clouds need it."""
        before = len(self.built)
        builder.ensure(clouds, find_go=lambda: self.go, build=self._build)
        return self.built[before:]

    def _build(self, part: str, folder: Path, go: builder.Go) -> None:
        for result in self.results:
            result.mkdir(parents=True, exist_ok=True)
        if part == self.breaks_at:
            raise KeyboardInterrupt
        (folder / "bin" / part).touch()
        self.built.append(part)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path / "cache", monkeypatch)


@pytest.mark.parametrize("place", ["{file}", "{file}/x", "/proc/x/y"])
def test_a_cache_folder_that_cannot_be_made_is_refused(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("KARPSTACK_CACHE", place.format(file=tmp_path / "file"))
    with pytest.raises(
        builder.BuildError, match=r"cache folder .* \(.*\), so there are none to run; name .* KARPSTACK_CACHE"
    ):
        machine.ensure("aws")


def test_another_clouds_karpenter_is_built_only_when_it_is_asked_for(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert machine.ensure("aws") == ["kubernetes", "karpenter-aws", "pulumi", "charts", "addons"]
    assert machine.ensure("aws") == []
    capsys.readouterr()
    assert machine.ensure("azure") == ["karpenter-azure"]
    assert "Building karpenter-azure with go1.26.1" in capsys.readouterr().out
    assert machine.ensure("aws", "azure") == []


def test_a_pulumi_of_the_users_own_is_not_built_until_it_has_gone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(builder, "pulumi_on_path", lambda: Path("/usr/bin/pulumi"))
        assert "pulumi" not in machine.ensure("aws")
    assert machine.ensure("aws") == ["pulumi"]


def test_a_change_in_one_part_builds_that_part_alone(machine: Machine, pins: Path) -> None:
    machine.ensure("aws", "azure")
    source = pins / "karpenter-azure" / "prices" / "main.go"
    source.write_text(source.read_text() + "// changed\n")
    assert machine.ensure("aws", "azure") == ["karpenter-azure"]


def test_what_go_kept_goes_once_the_engines_stand(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.ensure("aws")
    assert [path for path in machine.results if path.exists()] == []
    monkeypatch.setenv(builder.KEEP_BUILDS, "1")
    machine.ensure("azure")
    assert [path for path in machine.results if path.exists()] == machine.results


def test_the_largest_results_go_before_what_shares_nothing_with_them_is_built(machine: Machine) -> None:
    forgotten: list[tuple[int, tuple[str, ...]]] = []

    class Forgetting(builder.Go):
        def forget(self, *kinds: str) -> None:
            forgotten.append((len(machine.built), kinds))

    machine.go = Forgetting("go", "go1.26.1")
    machine.ensure("aws", "azure")
    assert machine.built[:2] == ["kubernetes", "karpenter-azure"]
    assert forgotten == [(2, ("builds",)), (6, ("builds", "modules"))]


def test_an_interrupted_build_keeps_what_it_has_and_the_next_goes_on(machine: Machine) -> None:
    machine.breaks_at = "pulumi"
    with pytest.raises(KeyboardInterrupt):
        machine.ensure("aws")
    assert machine.built == ["kubernetes", "karpenter-aws"]
    assert [path for path in machine.results if path.exists()] == machine.results
    assert not EngineSet.current().complete("pulumi")
    machine.breaks_at = ""
    assert machine.ensure("aws") == ["pulumi", "charts", "addons"]


def test_lint_refuses_what_go_vet_has_not_seen(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_, **__: SimpleNamespace(stdout=""))
    machine.ensure("aws")
    with pytest.raises(builder.BuildError, match=r"go vet has not seen karpenter-azure .*run: make engines"):
        builder.lint(find_go=lambda: machine.go)
    machine.ensure("azure")
    builder.lint(find_go=lambda: machine.go)


@pytest.mark.parametrize(
    ("text", "clouds"),
    [
        ("config:\n  karpstack:cloud: azure # of ours\n", ["azure"]),
        ("config:\n    'karpstack:cloud': \"aws\"\n", ["aws"]),
        ("config:\n  karpstack:cloud: gcp\n", []),
        ("config:\n  # karpstack:cloud: aws\n", []),
        ("config: {karpstack:cloud: aws}\n", []),
    ],
)
def test_the_cloud_of_a_stack_file_is_found_without_a_reader_of_yaml(
    tmp_path: Path, text: str, clouds: list[str]
) -> None:
    path = tmp_path / "Pulumi.mine.yaml"
    path.write_text(text)
    assert _clouds([path]) == clouds
    assert _clouds([path.with_name("Pulumi.yours.yaml")]) == []


def test_without_a_stack_file_all_clouds_are_built_for() -> None:
    files = [ROOT / f"Pulumi.{stack}.yaml" for stack in ("aks-nap", "eks")]
    assert _clouds([]) == _clouds(files) == ["aws", "azure"]
    assert [_clouds([file]) for file in files] == [["azure"], ["aws"]]


def test_a_cache_key_names_what_is_built_and_nothing_else(pins: Path) -> None:
    sets: list[tuple[str, ...]] = [("aws",), ("azure",), ("aws", "azure")]
    before = {clouds: engines.cache_key(clouds) for clouds in sets}
    assert len(set(before.values())) == 3
    assert engines.cache_key(("azure", "aws")) == before["aws", "azure"]
    assert all(key.startswith(f"engines-{platform.system().lower()}-{platform.machine()}-") for key in before.values())
    (source,) = (pins / "karpenter-aws" / "prices").glob("main.go")
    source.write_text(source.read_text() + "// changed\n")
    changed = [clouds for clouds, key in before.items() if engines.cache_key(clouds) != key]
    assert changed == [("aws",), ("aws", "azure")]


def test_the_cache_key_is_printed_and_nothing_is_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")  # without a compiler
    monkeypatch.setattr("sys.argv", ["engines", "--cache-key", str(ROOT / "Pulumi.eks.yaml")])
    assert program.main() == 0
    assert capsys.readouterr().out == f"{engines.cache_key(('aws',))}\n"
