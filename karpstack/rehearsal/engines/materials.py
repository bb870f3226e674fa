"""What published engines are made of: an SBOM with the checksums of Go modules, and a statement of how they are built.

Both hold no time and no path of a machine: engines that are published twice have the same digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final
from urllib.parse import quote

from karpstack.rehearsal.engines import HERE, EngineSet, part_sources

from .builder import ENVIRONMENT, PROGRAMS, Go, build_flags

_BUILD: Final = "urn:karpstack:engines:build:v1"
_REQUIRED: Final = re.compile(r"^\s*(?:require )?([\w./-]+\.[\w./-]+) (v\S+)(?! // indirect)$", re.MULTILINE)
Programs = Mapping[str, Sequence[Mapping[str, Any]]]


def project_version() -> str:
    """Return the version of karpstack; `0` where it is not installed."""
    try:
        return version("karpstack")
    except PackageNotFoundError:
        return "0"


def programs(engines: EngineSet, parts: Sequence[str], go: Go) -> Programs:
    """Return what Go has written into the programs of each part: `go version -m -json`.

    It runs outside of the part's module, which may ask for a newer Go.
    """
    return {part: list(_values(go.run("/", "version", "-m", "-json", str(engines.part(part))))) for part in parts}


def _values(text: str) -> Iterator[dict[str, Any]]:
    """Give one JSON value after the other."""
    decoder, text = json.JSONDecoder(), text.strip()
    while text:
        value, end = decoder.raw_decode(text)
        text = text[end:].lstrip()
        yield value


def sbom(built: Programs) -> dict[str, Any]:
    """Return a CycloneDX document of programs and charts, and of the modules that each is made of."""
    modules: dict[str, dict[str, Any]] = {}
    applications, dependencies = [], []
    for part, found in built.items():
        names = {package: name for name, package in PROGRAMS.get(part, {}).items()}
        made = [(names.get(one["Path"], one["Path"]), one["GoVersion"], list(_modules(one))) for one in found]
        for name, go, needed in made or [(part, "", list(_pinned(part)))]:
            reference = f"{part}/{name}"
            properties = [{"name": "karpstack:part", "value": part}, {"name": "go:version", "value": go}]
            applications.append({"type": "application", "bom-ref": reference, "name": name, "properties": properties})
            dependencies.append({"ref": reference, "dependsOn": sorted({module["bom-ref"] for module in needed})})
            modules |= {module["bom-ref"]: module for module in needed}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "karpstack engines", "version": project_version()},
        },
        "components": [*applications, *(modules[reference] for reference in sorted(modules))],
        "dependencies": dependencies,
    }


def _modules(program: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The modules of a program, in place of which the one that replaces it; a changed one has no checksum."""
    for one in (program["Main"], *program.get("Deps", ())):
        other = one.get("Replace", one)
        local = other is not one and not other.get("Sum")  # a copy without packages: see `builder._left_out`
        used = one if local else other
        yield _module(used["Path"], used.get("Version", ""), used.get("Sum", ""), changed=local)


def _pinned(part: str) -> Iterator[dict[str, Any]]:
    """The modules that a part without programs takes its charts from, with the checksums of its go.sum."""
    sums = (HERE / part / "go.sum").read_text()
    for path, release in _REQUIRED.findall((HERE / part / "go.mod").read_text()):
        found = re.search(rf"^{re.escape(path)} {re.escape(release)} (h1:\S+)$", sums, re.MULTILINE)
        yield _module(path, release, found[1] if found else "")


def _module(path: str, release: str, checksum: str, *, changed: bool = False) -> dict[str, Any]:
    url = f"pkg:golang/{quote(path)}@{quote(release, safe='')}"
    properties = [{"name": "go:sum", "value": checksum}] if checksum else []
    if changed:
        properties.append({"name": "karpstack:changed", "value": "packages that a rehearsal never uses are left out"})
    return {
        "type": "library",
        "bom-ref": url,
        "name": path,
        "version": release,
        "purl": url,
        "properties": properties,
    }


def provenance(engines: EngineSet, platform: str, layers: Mapping[str, str], built: Programs) -> dict[str, Any]:
    """Return an in-toto statement with SLSA provenance.

    Args:
        engines: The engines.
        platform: `linux/amd64`.
        layers: Part -> digest of its layer.
        built: As of `programs`.
    """
    sources = {path for part in layers for path in part_sources(part)}
    compilers = sorted({str(one["GoVersion"]) for found in built.values() for one in found})
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": f"{part}/{engines.keys[part]}", "digest": {"sha256": digest.removeprefix("sha256:")}}
            for part, digest in layers.items()
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": _BUILD,
                "externalParameters": {"platform": platform, "parts": {part: engines.keys[part] for part in layers}},
                "internalParameters": {
                    "go": compilers,
                    "environment": dict(ENVIRONMENT),
                    "commands": {
                        part: ["go", "build", *build_flags(part), *PROGRAMS[part].values()]
                        for part in layers
                        if part in PROGRAMS
                    },
                },
                "resolvedDependencies": [
                    {
                        "name": f"karpstack/rehearsal/engines/{path.relative_to(HERE).as_posix()}",
                        "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
                    }
                    for path in sorted(sources)
                ],
            },
            "runDetails": {
                "builder": {"id": "urn:karpstack:engines:builder", "version": {"karpstack": project_version()}}
            },
        },
    }
