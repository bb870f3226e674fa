"""Writes what follows from the rules: docs/reference/policies.md, and the configurations of the production environment.

`make goldens` runs it, and tests compare. The exceptions in a configuration are people's, and are kept.
"""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from rules import tokens
from rules.rule import ResourceRule, Rule, StackRule

PACK: Final = Path(__file__).resolve().parent
DOCUMENT: Final = PACK.parent / "docs" / "reference" / "policies.md"
#: `production.json` is to be copied; the others are those of the example stacks: the same, with exceptions.
EXAMPLES: Final = tuple(PACK / f"{stack}.json" for stack in ("eks", "aks-nap", "aks-self-hosted"))
CONFIGURATIONS: Final = (PACK / "production.json", *EXAMPLES)

_EXCEPTIONS: Final = "exceptions"

_HEAD: Final = """\
# Rules of the policy pack

<!-- Written by `make goldens` from policies/rules; do not edit. -->

What each rule of [policies/](../../policies/README.md) requires, why, and how two configurations enforce it:
`baseline` is the pack without configuration, `production` is `--policy-pack-config policies/production.json`. A
mandatory rule stops the preview or the update, an advisory one warns, one that is off is not run. The pack's
[README](../../policies/README.md) explains how to select and tune rules, and how to
[grant exceptions](../../policies/README.md#exceptions). It judges Pulumi stacks: a repository with only manifests of
NodePools is not checked.
"""

_READ: Final = """\
## Resource types that the rules read

The rules read these types of resources, and of them only the properties that a rule names. Each rule above lists its
own. A class of azure-native for one version of the API, for example
`azure-native:authorization/v20220401:RoleAssignment`, counts as its type, and so does each API version of Karpenter's
own objects. **All other types pass unread**, for example `aws:ec2/instance:Instance`,
`aws:ec2/launchConfiguration:LaunchConfiguration`, `kubernetes:storage.k8s.io/v1:StorageClass`, and the resources of
other providers such as aws-native.
"""


def rules() -> list[Rule]:
    """The rules in force, in their order."""
    pack: list[Rule] = runpy.run_path(str(PACK), run_name="pack")["RULES"]
    return pack


def configuration(rules: Sequence[Rule], exceptions: Mapping[str, Any] | None) -> dict[str, Any]:
    """What `--policy-pack-config` takes for the production environment: what differs from the baseline, by rule."""
    content: dict[str, Any] = {_EXCEPTIONS: dict(exceptions)} if exceptions else {}
    for rule in rules:
        level = rule.enforcement["production"]
        changed = {"enforcementLevel": level.value} if level is not rule.enforcement["baseline"] else {}
        if changed or rule.production:
            content[rule.name] = changed | dict(rule.production)
    return content


def document(rules: Sequence[Rule]) -> str:
    """docs/reference/policies.md."""
    groups = list(dict.fromkeys(rule.group for rule in rules))
    lines = [_HEAD]
    for group in groups:
        lines.append(f"## {group[0].upper()}{group[1:]}\n")
        lines.append("| rule | severity | baseline | production |\n| --- | --- | --- | --- |")
        of_group = [rule for rule in rules if rule.group == group]
        lines.extend(
            f"| [`{rule.name}`](#{rule.name}) | {rule.severity.value} | {_level(rule, 'baseline')} | "
            f"{_level(rule, 'production')} |"
            for rule in of_group
        )
        lines.append("")
        for rule in of_group:
            lines.extend(_section(rule))
    lines.append(_READ)
    lines.extend(f"- `{token}`" for token in tokens.all_of_them())
    return "\n".join(lines).rstrip() + "\n"


def types_read(rule: Rule) -> list[str]:
    """Return the resource types that a rule reads: those that it judges, and those that its functions name."""
    functions: list[object] = [rule.check] if isinstance(rule, StackRule) else []
    judged: set[str] = set()
    if isinstance(rule, ResourceRule):
        functions, judged = [*rule.checks.values()], set(rule.checks)
    seen: set[object] = set()
    named = {token for function in functions for token in _named(function, seen)}
    return sorted((judged | named) & set(tokens.all_of_them()))


def _named(value: object, seen: set[object]) -> Iterator[str]:
    """Give the texts that a value of the rules' code leads to; a function leads to what its code names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _named(one, seen)
    elif isinstance(value, FunctionType) and value.__module__.startswith("rules") and value not in seen:
        seen.add(value)
        names = set(_names(value.__code__))
        found = [value.__globals__[name] for name in names if name in value.__globals__]
        modules = [one for one in found if isinstance(one, ModuleType) and one.__name__.startswith("rules")]
        attributes = [getattr(module, name) for module in modules for name in names if hasattr(module, name)]
        for one in (*found, *attributes, *(cell.cell_contents for cell in value.__closure__ or ())):
            yield from _named(one, seen)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _level(rule: Rule, environment: str) -> str:
    level = rule.enforcement[environment].value
    return "off" if level == "disabled" else level


def _section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.name}\n"
    yield f"{rule.description} {rule.rationale}\n"
    yield f"- Otherwise: {rule.consequence}"
    yield f"- Fix: {rule.remediation}"
    if types := types_read(rule):
        yield f"- Reads: {', '.join(f'`{token}`' for token in types)}"
    yield f"- See <{rule.url}>\n"
    if rule.settings:
        yield "| setting | type | baseline | production |\n| --- | --- | --- | --- |"
        for name, schema in rule.settings.items():
            baseline = schema["default"]
            production = rule.production.get(name, baseline)
            yield f"| `{name}` | {_type(schema)} | {_value(baseline)} | {_value(production)} |"
        yield ""


def _type(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "array":
        items = schema["items"]
        if items["type"] == "object":
            return "list of {" + ", ".join(items["properties"]) + "}"
        return f"list of {items['type']}"
    return str(schema["type"])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "<br>".join(_value(item) for item in value) or "none"
    if isinstance(value, dict):
        first, *others = (", ".join(part) if isinstance(part, list) else str(part) for part in value.values())
        return f"`{first}`" + "".join(f": {other}" for other in others)
    return f"`{json.dumps(value) if not isinstance(value, str) else value}`"


def written() -> dict[Path, str]:
    """Each file, and what must be in it."""
    pack = rules()
    content = {DOCUMENT: document(pack)}
    for path in CONFIGURATIONS:
        kept = json.loads(path.read_text()).get(_EXCEPTIONS) if path.is_file() else None
        content[path] = json.dumps(configuration(pack, kept), indent=2) + "\n"
    return content


def main() -> None:
    """Write the files."""
    for path, content in written().items():
        path.write_text(content)


if __name__ == "__main__":
    main()
