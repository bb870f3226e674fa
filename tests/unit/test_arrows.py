"""The arrows between folders: who may import whom (docs/decisions/0001-layers.md)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: What the environments of both clouds are made of.
_OF_ENVIRONMENTS = {
    "components/workloads",
    "components/kubernetes",
    "components/documents",
    "components/last_state",
    "components/problems",
    "components/replacement",
    "components/naming",
    "components/outputs",
    "components/settings",
    "components/versions",
}
# Folder or module -> what else of this repository it may import, both below `karpstack`. The longest path counts.
ALLOWED: dict[str, set[str]] = {
    "__main__": {"components"},
    "program": {"components"},  # a link to it
    "components": {"components"},
    "components/problems": {"components", "karpenter/findings"},
    "components/replacement": {"components", "karpenter/findings"},
    "components/documents": {"components/documents"},
    "components/kubernetes": {
        "karpenter",
        "components/kubernetes",
        "components/documents",
        "components/naming",
        "components/versions",
        "components/workloads",
    },
    "components/workloads": {
        "components/workloads",
        "components/documents",
        "components/naming",
        "components/settings",
    },
    "components/settings": {
        "karpenter",
        "components/settings",
        "components/documents",
        "components/naming",
        "components/problems",
        "components/versions",
    },
    "components/eks": {"karpenter/clock", "components/eks", *_OF_ENVIRONMENTS},
    "components/aks": {"components/aks", *_OF_ENVIRONMENTS},
    "karpenter": {"karpenter"},
    "cli": {
        "cli",
        "preflight",
        "pull_request",
        "real_run",
        "rehearsal",
        "review",
        "scale_test",
        "snapshot",
        "text",
        "whatif",
    },
    "policies": {"policies/rules", "karpenter"},
    "policies/rules": {"policies/rules", "karpenter"},
    # What others wrote is read, shown and written over by the same rules in all folders; text imports
    # nothing of the rest.
    "review": {"review", "policies/rules", "policies/reference", "karpenter", "text"},
    "playbooks": {
        "playbooks",
        "preflight",
        "real_run/guard",
        "real_run/stages",
        "scale_test",
        "text",
        "snapshot",
        "whatif",
        "karpenter",
        "components/workloads",
    },
    "preflight": {
        "preflight",
        "components/documents",
        "components/naming",
        "components/problems",
        "components/settings",
        "components/versions",
        "components/workloads",
        "karpenter",
        "text",
    },
    "real_run": {
        "real_run",
        "preflight",
        "karpenter",
        "components/documents",
        "components/naming",
        "components/settings",
        "text",
        "scale_test/processes",
        "scale_test/scenarios/actions",
        "scale_test/reports/reading",
    },
    "text": {"text"},
    "text/explanation": {"text", "karpenter/findings"},
    "text/findings": {"text", "karpenter/findings"},
    "text/validation": {"text", "karpenter/findings"},
    "scale_test": {"scale_test", "karpenter", "text"},
    # What the program adds to a NodePool decides whether a change of it is seen.
    "snapshot": {"snapshot", "karpenter", "scale_test/connecting", "text", "components/documents"},
    # They ask the engines, which know Karpenter's data; the data itself is read by everything, and imports nothing.
    "generators": {"generators", "karpenter", "rehearsal"},
    # Where the comment is written, nothing is installed but what speaks HTTP.
    "pull_request": {"pull_request", "text"},
    "rehearsal": {"rehearsal", "karpenter", "text"},
    "whatif": {"whatif", "snapshot", "scale_test", "karpenter", "text"},
    "rehearsal/state": {"rehearsal/state", "text"},
    "rehearsal/state/ancestors": set(),
    # What a recording says is judged by the code that judged the calls.
    "rehearsal/rights": {
        "rehearsal/rights",
        "rehearsal/recorded_rights",
        "rehearsal/aws/iam/policies",
        "rehearsal/azure/arm/identifiers",
        "rehearsal/azure/identity/roles",
    },
    "rehearsal/recorded_rights": {"text"},
    "rehearsal/rights/completeness": {"rehearsal/rights", "rehearsal/recorded_rights", "text"},
    "rehearsal/rights/review_output": {"rehearsal/rights", "rehearsal/recorded_rights", "text"},
    "rehearsal/rights/reasons": {"rehearsal/rights", "rehearsal/recorded_rights", "text"},
    "rehearsal/host": {"rehearsal/host", "rehearsal/state", "text"},
    "rehearsal/host/user_environment": set(),
    "rehearsal/host/peers": set(),
    "rehearsal/engines": {
        "rehearsal/engines",
        "rehearsal/host/user_environment",
        "rehearsal/state/ancestors",
        "text/codes",
        "text/deadlines",
        "text/files",
        "text/proxies",
        "text/shown",
    },
    "rehearsal/cluster": {
        "karpenter",
        "rehearsal/cluster",
        "rehearsal/engines",
        "rehearsal/host",
        "rehearsal/state",
        "rehearsal/timing",
        "text",
    },
    "rehearsal/cluster/provider": {"rehearsal/cluster", "rehearsal/attachment"},
    "rehearsal/attachment": {"rehearsal/attachment", "rehearsal/engines", "rehearsal/host", "text/shown"},
    "rehearsal/aws": {
        "karpenter",
        "rehearsal/aws",
        "rehearsal/attachment",
        "rehearsal/cluster",
        "rehearsal/host",
        "rehearsal/recorded_rights",
        "rehearsal/control",
        "rehearsal/timing",
        "text",
    },
    "rehearsal/azure": {
        "karpenter",
        "rehearsal/azure",
        "rehearsal/attachment",
        "rehearsal/cluster",
        "rehearsal/host",
        "rehearsal/recorded_rights",
        "rehearsal/control",
        "rehearsal/timing",
        "text",
    },
    # The ground of the other rooms, which come in as arguments: what is beside it here, it names as types only.
    "rehearsal/azure/arm": {
        "karpenter/clock",
        "rehearsal/azure/arm",
        "rehearsal/azure/context",
        "rehearsal/azure/identity/access",
    },
}
# The language host, with its packs' process, and the gRPC server speak Pulumi's protocol; nothing else of the rehearsal
# needs Pulumi.
PULUMI_IN_REHEARSAL = {
    "rehearsal/attachment/language_host",
    "rehearsal/attachment/own_python",
    "rehearsal/attachment/pack_process",
    "rehearsal/attachment/server",
    "rehearsal/attachment/values",
}
STANDARD_LIBRARY_ONLY = (
    "karpenter/addresses",
    "karpenter/callbacks",
    "components/documents",
    "karpenter/type_facts",
    "karpenter/fact_files",
    "karpenter/images",
    # What the pack needs of it, but for budgets: a pack that is published brings few libraries.
    "karpenter/instance_types",
    "karpenter/offers",
    "karpenter/patterns",
    "karpenter/quantities",
    "karpenter/ranges",
    "karpenter/releases",
    "karpenter/requirements",
    "karpenter/type_names",
    "pull_request/__main__",
    "pull_request/commands",
    "pull_request/inputs",
    "pull_request/job",
    "pull_request/outcome",
    "pull_request/rehearse",
    "pull_request/stacks",
    "pull_request/text",
    "rehearsal/state/ancestors",
    "rehearsal/engines",
    # What the modules of pull_request need of it.
    "text/codes",
    "text/deadlines",
    "text/files",
    "text/json_file",
    "text/markdown",
    "text/names",
    "text/projects",
    "text/proxies",
    "text/shown",
)
FOLDERS = {"components": ROOT / "components", "policies": ROOT / "policies", "playbooks": ROOT / "playbooks"}
FOLDERS |= {path.name: path for path in (ROOT / "karpstack").iterdir() if path.is_dir() and not path.is_symlink()}
OURS = {"__main__", "tests", *FOLDERS}
# The pack's folder is the root of its imports, as the engine runs it.
PACK_ROOT = {"rules": "policies/rules", "reference": "policies/reference"}


def modules() -> Iterator[tuple[str, Path]]:
    for name, folder in sorted(FOLDERS.items()):
        for path in sorted(folder.rglob("*.py")):
            yield f"{name}/{path.relative_to(folder).with_suffix('').as_posix()}", path
    yield "__main__", ROOT / "__main__.py"


def imports(module: str, path: Path) -> Iterator[str]:
    """Absolute paths (with slashes) of everything that a module imports."""
    for imported in written(module, path):
        top, *rest = imported.removeprefix("karpstack/").split("/")
        yield "/".join([PACK_ROOT.get(top, top), *rest])


def written(module: str, path: Path) -> Iterator[str]:
    """The same as the module writes it, the pack's without its folder."""
    package = module.split("/")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.replace(".", "/") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                stem = "/".join([*base, *(node.module.split(".") if node.module else [])])
            else:
                stem = (node.module or "").replace(".", "/")
            for alias in node.names:
                deeper = f"{stem}/{alias.name}"
                top, *rest = deeper.removeprefix("karpstack/").split("/")
                place = FOLDERS.get(top, ROOT / top).joinpath(*rest)
                is_module = place.with_name(f"{place.name}.py").is_file() or place.is_dir()
                yield deeper if is_module else stem


def rule_for(module: str) -> set[str]:
    name = module
    while name not in ALLOWED and "/" in name:
        name = name.rsplit("/", 1)[0]
    return ALLOWED[name]  # a folder without a row is an error


def inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


@pytest.mark.parametrize(("module", "path"), [pytest.param(*item, id=item[0]) for item in modules()])
def test_imports_follow_the_arrows(module: str, path: Path) -> None:
    for imported in imports(module, path):
        top = imported.split("/")[0]
        if top in OURS:
            assert any(inside(imported, allowed) for allowed in rule_for(module)), f"{module} imports {imported}"
        if module.startswith(STANDARD_LIBRARY_ONLY) and top not in OURS:
            assert top in sys.stdlib_module_names, f"{module} imports {top}: standard library only"
        if module.startswith("rehearsal") and top.startswith("pulumi"):
            assert module in PULUMI_IN_REHEARSAL, f"{module} imports {imported}"


@pytest.mark.parametrize("cloud", ["eks", "aks"])
def test_no_cloud_imports_the_other(cloud: str) -> None:
    other = {"eks": "aks", "aks": "eks"}[cloud]
    for module, path in modules():
        if inside(module, f"components/{cloud}"):
            foreign = (f"components/{other}", f"components/settings/{other}")
            assert not any(inside(imported, folder) for imported in imports(module, path) for folder in foreign), module


def test_the_program_never_mentions_the_rehearsal() -> None:
    # The command line is the one that knows all; it imports a command's package when the command runs.
    # Generators are no part of it: `make facts` runs them.
    know_it = ("rehearsal", "cli", "generators")
    program = [path for module, path in modules() if not any(inside(module, folder) for folder in know_it)]
    for path in (ROOT / "Pulumi.yaml", *program):
        assert "import karpstack.rehearsal" not in path.read_text(), path
        assert "from karpstack.rehearsal" not in path.read_text(), path


@pytest.mark.parametrize("depth", [1, 2])
def test_no_folder_needs_one_that_needs_it(depth: int) -> None:
    """At depth 2 the folders below one, such as rehearsal/aws; modules beside them count as folders of their own."""
    needs: dict[str, set[str]] = {}
    for module, path in modules():
        folder = "/".join(module.split("/")[:depth])
        for imported in imports(module, path):
            other = "/".join(imported.split("/")[:depth])
            if imported.split("/")[0] in OURS and other != folder and other.count("/") == depth - 1:
                needs.setdefault(folder, set()).add(other)
    sorter = TopologicalSorter(needs)
    sorter.prepare()  # raises CycleError with the circle
