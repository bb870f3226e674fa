"""The package stands alone: without the rehearsal, and as a library of other Pulumi programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import grpc
import pytest
import yaml
from packaging.requirements import Requirement
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from tests.unit.whatif.told import lines

ROOT = Path(__file__).resolve().parents[2]
STACKS = ("eks", "aks-nap", "aks-self-hosted")
FOLDERS_IN_THE_WHEEL = ("components", "karpstack", "playbooks", "policies")
OF_A_CLONE = "components/requirements.txt"  # it names the clone itself
IN_THE_WHEEL = ("Pulumi.yaml", *(f"Pulumi.{stack}.yaml" for stack in STACKS), "__main__.py", "ansible.cfg")
IN_A_PROJECT = ("Pulumi.yaml", "__main__.py", "Pulumi.eks.yaml")
CONTAINER = {"name": "web", "image": "web", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [CONTAINER]},
    "status": {"phase": "Pending"},
}


def test_without_the_rehearsal_the_rest_is_complete(tmp_path: Path) -> None:
    stacks = [path.name for path in ROOT.glob("Pulumi*.yaml")]
    folders = (
        "components",
        "dashboards",
        "docs",
        "examples",
        "karpstack",
        "policies",
        "playbooks",
        "tests",
    )
    files = ("__main__.py", "ansible.cfg", "Makefile", "README.md", "pyproject.toml", "requirements.lock")
    for name in (*stacks, *files, *folders):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, symlinks=True)  # with what is compiled already
        else:
            shutil.copy(source, tmp_path / name)
    # What rehearses pull requests, and what asks the engines for data, goes with the rehearsal.
    for name in ("rehearsal", "pull_request", "generators"):
        shutil.rmtree(tmp_path / "karpstack" / name)
    gone = (
        "rehearsal",
        "unit/rehearsal",
        "unit/generators",
        "programs/rehearsal",
        "unit/pull_request",
        "programs/pull_request",
    )
    # So do tests that ask the simulated accounts.
    for name in (*gone, "unit/real_run"):
        shutil.rmtree(tmp_path / "tests" / name)
    preflight = tmp_path / "tests" / "unit" / "preflight"
    for pattern in ("conftest.py", "test_price_list.py", "test_refresh.py", "*preflight_*.py"):
        for path in preflight.glob(pattern):
            path.unlink()
    # These three are about the rehearsal's place in this repository.
    for name in ("test_arrows.py", "test_clock.py", "test_pins.py"):
        (tmp_path / "tests" / "unit" / name).unlink()
    # Every test is collected, which imports all that it needs. test_arrows.py sees the imports inside functions.
    tiers = ("tests/unit", "tests/policies", "tests/programs")
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *tiers],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout[-5000:]
    assert " tests collected" in result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python environment with the built wheel, and with the libraries of this one but without its checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    files = (*IN_THE_WHEEL, "pyproject.toml", "CHANGELOG.md", "LICENSE")
    for name in (*FOLDERS_IN_THE_WHEEL, "examples/snapshots"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignored, symlinks=True)
    for name in files:
        shutil.copy(ROOT / name, folder / "source" / name)
    uv = str(Path(sys.executable).with_name("uv"))
    # Builds a source distribution, and the wheel from it.
    build = [uv, "build", "--quiet", "--offline", "--no-build-isolation", "--python", sys.executable]
    subprocess.run([*build, "--out-dir", str(folder), str(folder / "source")], check=True, capture_output=True)
    shutil.rmtree(folder / "source")
    environment = folder / "environment"
    venv.create(environment)
    (wheel,) = folder.glob("*.whl")
    install = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--python",
        str(environment / "bin" / "python"),
    ]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    (site,) = environment.glob("lib/python*/site-packages")
    # A file that is read this way reads no others, so the checkout that is installed there is not found.
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return site


def without_the_checkout(site: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment."""
    program = site.parents[2] / "bin" / arguments[0]
    return subprocess.run(
        [str(program), *arguments[1:]], cwd=folder, env=variables(), capture_output=True, text=True, check=False
    )


def variables() -> dict[str, str]:
    """The environment, without what leads to the checkout or to a Pulumi of the machine."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    path = [one for one in kept["PATH"].split(os.pathsep) if not (Path(one) / "pulumi").exists()]
    return {**kept, "PATH": os.pathsep.join(path)}


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(installed: Path) -> None:
    names = {path.name for path in installed.iterdir()}
    assert {name for name in names if not name.startswith(("_", "libraries"))} == {
        "karpstack",
        f"karpstack-{metadata.version('karpstack')}.dist-info",
    }
    files = subprocess.run(
        ["git", "ls-files", *FOLDERS_IN_THE_WHEEL], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in files:
        if name != OF_A_CLONE and not (ROOT / name).is_dir():  # a link
            assert (installed / "karpstack" / name.removeprefix("karpstack/")).is_file(), name
    for name in ("session/commands/pulumi", "cluster/plugins/aws"):
        assert os.access(installed / "karpstack" / "rehearsal" / name, os.X_OK)


def test_the_description_works_outside_of_the_repository(installed: Path) -> None:
    (described,) = installed.glob("karpstack-*.dist-info")
    text = (described / "METADATA").read_text(encoding="utf-8").partition("\n\n")[2]
    assert text == (ROOT / "karpstack" / "README.md").read_text(encoding="utf-8")
    assert [link for link in re.findall(r"\]\((.*?)\)", text) if not link.startswith("https://")] == []


def needed(described: metadata.Distribution, extra: str = "") -> Iterator[metadata.Distribution]:
    """Libraries of a distribution without extras, and theirs."""
    for one in map(Requirement, described.requires or ()):
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            library = metadata.distribution(one.name)
            yield library
            for each in ("", *one.extras):
                yield from needed(library, each)


def link(folder: Path, libraries: Iterable[metadata.Distribution]) -> None:
    """Link the modules of some libraries into a folder, where no other can be imported."""
    for library in libraries:
        for name in {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}:
            if not (folder / name).exists():
                (folder / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)


def test_a_command_without_extras_helps_or_says_what_to_install(installed: Path, tmp_path: Path) -> None:
    (described,) = installed.glob("karpstack-*.dist-info")
    link(tmp_path, needed(metadata.Distribution.at(described)))
    path = [str(installed), str(tmp_path)]
    code = f"import sys; sys.path[:0] = {path}; from karpstack.cli import main; sys.exit(main())"
    for line, expected, words in (
        ("--help", 0, "Usage: karpstack"),
        ("whatif --help", 0, "Usage: karpstack whatif"),
        ("review --help", 0, "Usage: karpstack review"),
        ("explain eks-pod-cidr-too-small", 0, "a stack file"),
        ("explain node-pool-limits", 0, "a rule of the policy pack"),
        ("whatif eks", 3, "pip install 'karpstack[aws,azure,rehearsal]'"),
    ):
        # -S: without the site-packages, and so without the libraries of the extras.
        done = without_the_checkout(installed, "python", "-S", "-c", code, *line.split(), folder=tmp_path)
        assert done.returncode == expected, done.stderr
        assert words in done.stdout + done.stderr, line


def test_the_sdk_of_a_cloud_is_an_extra(installed: Path) -> None:
    (described,) = installed.glob("karpstack-*.dist-info")
    clouds = [line for line in metadata.Distribution.at(described).requires or () if line.startswith("pulumi-a")]
    # A user of one cloud does not need the other's SDK.
    assert [re.findall(r"^[a-z-]+|extra == .*", line) for line in clouds] == [
        ["pulumi-aws", 'extra == "aws"'],
        ["pulumi-azure-native", 'extra == "azure"'],
    ]


#: Runs commands in one process, which loads large libraries once; then imports every module.
COMMANDS = """
import contextlib, importlib, io, json, pathlib, sys
from karpstack.cli import main
told = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = main(words)
    told.append([code, out.getvalue()])
root = pathlib.Path(sys.modules["karpstack"].__file__).parent
for path in sorted(root.rglob("*.py")):
    *folders, name = path.relative_to(root.parent).with_suffix("").parts
    if name == "__main__" or folders[1:2] in (["policies"], ["playbooks"], ["program"]):
        continue  # programs, and what Pulumi and Ansible load by rules of their own
    importlib.import_module(".".join(folders if name == "__init__" else [*folders, name]))
print(json.dumps(told))
"""


def test_commands_and_modules_work_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    for name in IN_A_PROJECT:
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "whatif").mkdir()
    told = lines("eks.consolidation-policies", 3, change_begins={"candidate": "tighter"})
    (tmp_path / "whatif" / "timeline.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [POD]}))
    expected = {
        "version": (0, f"karpstack {metadata.version('karpstack')}"),
        "snapshot convert pods.json --output snapshot.json": (0, "1 pod in 1 workload"),
        "snapshot check snapshot.json": (0, "objects that a what-if would create"),
        "snapshot show snapshot.json": (0, "web"),
        "whatif report whatif --snapshot snapshot.json": (0, "What if tighter on eks: within its limits"),
        "scenario list": (0, "self-hosted-inflate"),
        "scenario check": (0, "nothing is wrong with them"),
        "preflight --help": (0, "Usage: karpstack preflight"),
        "preflight rights eks --account 123456789012": (0, "karpstack"),
        "explain node-pool-limits": (0, "a rule of the policy pack"),
        "explain eks-pod-cidr-too-small": (0, "a stack file"),
        "review eks --live --only-configuration --policy-pack-config baseline": (0, ""),
        "review eks --live": (3, "there is no program `pulumi` on PATH"),
        "doctor": (None, "Python modules"),
        "engines status": (None, "kubernetes: "),
        "status eks": (1, "eks: down"),
        "pack rules": (2, "rules: File exists"),
    }
    made = without_the_checkout(installed, "karpstack", "pack", "rules", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    done = without_the_checkout(
        installed, "python", "-c", COMMANDS, json.dumps([line.split() for line in expected]), folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    for (line, (code, words)), (found, said) in zip(expected.items(), json.loads(done.stdout), strict=True):
        assert code in (found, None), f"{line}: {said}"
        assert words in said, line
        assert str(ROOT) not in said, line
    options = yaml.safe_load((tmp_path / "rules" / "PulumiPolicy.yaml").read_text())["runtime"]["options"]
    assert options["virtualenv"] == str(installed.parents[2])
    count = "import runpy; print(len(runpy.run_path('rules', run_name='pack')['RULES']))"
    counted = without_the_checkout(installed, "python", "-c", count, folder=tmp_path)
    assert int(counted.stdout) > 1, counted.stderr
    listed = without_the_checkout(installed, "karpstack", "--help", folder=tmp_path)
    assert (listed.returncode, listed.stdout[:16]) == (0, "Usage: karpstack")


SIDE = """
import pathlib
from karpstack.rehearsal.whatif.manifests import Cluster

here = pathlib.Path.cwd()
print(Cluster(here / "cluster.json", "aks-nap", here, here / "sides").base().stack_file.path.name)
"""


def test_a_what_if_needs_no_stack_file_beside_it(installed: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "snapshots" / "20-pods.json", tmp_path / "cluster.json")
    asked = without_the_checkout(installed, "python", "-c", SIDE, folder=tmp_path)
    assert "aks-nap: there is no" not in asked.stderr
    made = without_the_checkout(installed, "python", "-c", SIDE.replace("aks-nap", "eks"), folder=tmp_path)
    assert made.stdout.strip() == "Pulumi.snapshot.yaml", made.stderr


def test_pulumi_can_start_the_provider_by_its_name(installed: Path, tmp_path: Path) -> None:
    program = installed.parents[2] / "bin" / "pulumi-resource-karpstack"
    command = [str(program), "127.0.0.1:1"]
    with subprocess.Popen(command, cwd=tmp_path, env=variables(), stdout=subprocess.PIPE) as provider:
        assert provider.stdout is not None
        try:
            with grpc.insecure_channel(f"127.0.0.1:{int(provider.stdout.readline())}") as channel:
                asked = provider_pb2_grpc.ResourceProviderStub(channel)
                schema = json.loads(asked.GetSchema(provider_pb2.GetSchemaRequest()).schema)
        finally:
            provider.kill()
    expected = json.loads((ROOT / "components" / "schema.json").read_text())
    assert schema == expected | {"version": metadata.version("karpstack")}


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("karpstack.components.settings", ("pulumi_aws", "pulumi_azure_native", "pulumi_kubernetes")),
        ("karpstack.components.eks", ("pulumi_azure_native",)),
        ("karpstack.components.aks", ("pulumi_aws",)),
    ],
)
def test_a_cloud_pays_for_no_other_clouds_sdk(imported: str, absent: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not set(absent) & set(loaded.stdout.split())
