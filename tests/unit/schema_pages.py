"""Write the pages of whatif.json and report.json from their JSON schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from karpstack.scale_test.reports.schema import SCHEMA as REPORT_VERSION
from karpstack.scale_test.reports.schema import Report
from karpstack.whatif.answer import SCHEMA_VERSION, Answer
from tests.unit.example_stack import ROOT

FOLDER: Final = ROOT / "docs" / "reference"
_LONGEST_CHOICE: Final = 200


class Page(NamedTuple):
    """A page about one file.

    Attributes:
        head: The text above the tables.
        schema: Returns the JSON schema.
    """

    head: str
    schema: Callable[[], Mapping[str, Any]]

    def text(self) -> str:
        """Return the page."""
        schema = self.schema()
        parts = {"The file": schema, **schema["$defs"]}
        return "\n".join([self.head, *(line for name, part in parts.items() for line in _part(name, part))])


PAGES: Final = {
    "whatif-json": Page(
        f"""\
# whatif.json

<!-- Written by `make goldens` from karpstack/whatif/answer.py; do not edit. -->

The answer of a [what-if](../how-to/whatif.md) as data, schema version {SCHEMA_VERSION}. Its
[JSON schema](../../karpstack/whatif/schema.json) is in the repository; `karpstack whatif schema` prints it. Times are
seconds after the change began, unless they are ISO 8601. Prices are USD an hour.
""",
        lambda: Answer.model_json_schema(by_alias=True),
    ),
    "report-json": Page(
        f"""\
# report.json

<!-- Written by `make goldens` from karpstack/scale_test/reports/schema.py; do not edit. -->

The report of a scale test as data, schema version {REPORT_VERSION}. Times `t` are seconds after the story's start.
Money is USD, memory is bytes. [How the values are measured](../../playbooks/README.md).
""",
        lambda: Report.model_json_schema(by_alias=True),
    ),
}


def _part(name: str, part: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {name}\n"
    yield " ".join(part["description"].split("\n\n")[0].split()) + "\n"
    if "properties" not in part:
        yield f"{_type(part).capitalize()}.\n"
        return
    yield "| key | type | meaning |\n| --- | --- | --- |"
    for key, value in part["properties"].items():
        meaning = " ".join(value["description"].split()).replace("|", "\\|")
        yield f"| `{key}` | {_type(value)} | {meaning} |"
    yield ""


def _type(value: Mapping[str, Any]) -> str:
    """Return a type in words, with links to parts of the file."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := value.get("enum") or [value["const"]] if "const" in value or "enum" in value else None:
        words = ", ".join(f"`{choice}`" for choice in choices)
        return words if len(words) < _LONGEST_CHOICE else "one of a list"
    if several := value.get("anyOf"):
        return " or ".join(_type(one) for one in several)
    if value.get("type") == "array":
        if rows := value.get("prefixItems"):
            return f"list of {', '.join(_type(one) for one in rows)}"
        return f"list of {_type(value.get('items', {}))}"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return f"object of {_type(inner)} by name" if isinstance(inner, Mapping) else "object"
    kind = str(value.get("type", "any value"))
    return {"string": "text", "integer": "number", "boolean": "`true` or `false`"}.get(kind, kind)
