"""`aws.iam.getPolicyDocument`: an IAM policy document from its parts, in the form that the real provider writes.

The form is that of hashicorp/terraform-provider-aws, internal/service/iam: the keys of a statement have a fixed order,
a list of one value is the value, and longer ones are sorted backward, but for the values of a condition.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from karpstack.rehearsal.attachment.resource import Properties, RefusedError

_LISTS: Final = {"actions": "Action", "notActions": "NotAction", "resources": "Resource", "notResources": "NotResource"}
_ORDER: Final = (
    "Sid",
    "Effect",
    "Action",
    "NotAction",
    "Resource",
    "NotResource",
    "Principal",
    "NotPrincipal",
    "Condition",
)
_ARGUMENTS: Final = frozenset({"overridePolicyDocuments", "policyId", "sourcePolicyDocuments", "statements", "version"})
_STATEMENT: Final = frozenset({*_LISTS, "sid", "effect", "principals", "notPrincipals", "conditions"})
_OLD, _NEW = "2008-10-17", "2012-10-17"
_FAILED: Final = "writing IAM Policy Document: "


def policy_document(arguments: Mapping[str, Any]) -> Properties:
    """Return the arguments, the document as `json` and `minifiedJson`, and an ID.

    Raises:
        RefusedError: In the provider's words.
    """
    given = {name: value for name, value in arguments.items() if value not in (None, "")}
    if unknown := sorted(given.keys() - _ARGUMENTS):
        raise RefusedError(f"getPolicyDocument: the rehearsal does not know the argument {', '.join(unknown)}")
    version = given.setdefault("version", _NEW)
    if version not in (_OLD, _NEW):
        raise RefusedError(f'expected version to be one of ["{_OLD}" "{_NEW}"], got {version}')
    merged: Properties = {}
    seen: set[str] = set()
    for index, text in enumerate(given.get("sourcePolicyDocuments") or ()):
        source = _parsed(text, f"source document {index}")
        for place, statement in enumerate(source["Statement"]):
            _check_sid(
                statement.get("Sid", ""),
                seen,
                f"merging source document {index}: duplicate Sid ({{}}) in source_policy_documents (statement {place})"
                ". Remove the Sid or ensure Sids are unique.",
            )
        _merge(merged, source)
    _merge(merged, _own(given, version))
    for index, text in enumerate(given.get("overridePolicyDocuments") or ()):
        _merge(merged, _parsed(text, f"override document {index}"))
    document = {key: merged[key] for key in ("Version", "Id", "Statement") if merged.get(key)}
    text = _written(document, indent=2)
    return {**given, "json": text, "minifiedJson": _written(document), "id": str(zlib.crc32(text.encode()))}


def _own(given: Mapping[str, Any], version: str) -> Properties:
    seen: set[str] = set()
    statements = []
    for each in given.get("statements") or ():
        statement = {name: value for name, value in each.items() if value is not None}
        if unknown := sorted(statement.keys() - _STATEMENT):
            raise RefusedError(f"getPolicyDocument: a statement has no {', '.join(unknown)}")
        sid, effect = statement.get("sid", ""), statement.get("effect", "Allow")
        if not re.fullmatch("[a-zA-Z0-9]*", sid):
            raise RefusedError(f"invalid value for sid (must only include alphanumeric characters): {sid!r}")
        if effect not in ("Allow", "Deny"):
            raise RefusedError(f'expected effect to be one of ["Allow" "Deny"], got {effect}')
        _check_sid(sid, seen, "duplicate Sid ({}). Remove the Sid or ensure the Sid is unique.")
        made = {"Sid": sid, "Effect": effect}
        for name, key in _LISTS.items():
            if values := statement.get(name):
                # Variables are filled in within resources, and not within actions.
                made[key] = _sorted(_filled(values, version) if key.endswith("Resource") else values)
        for name, key in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
            if blocks := statement.get(name):
                made[key] = _principals(
                    [(one["type"], _sorted(_filled(one["identifiers"], version))) for one in blocks]
                )
        if blocks := statement.get("conditions"):
            made["Condition"] = _conditions(
                [(one["test"], one["variable"], _filled(one["values"], version)) for one in blocks]
            )
        statements.append(made)
    return {"Version": version, "Id": given.get("policyId", ""), "Statement": statements}


def _parsed(text: str, which: str) -> Properties:
    """A document that was written before, in the form of this module."""
    try:
        document = json.loads(text)
        found = document.get("Statement", [])
        if not isinstance(found, list):
            raise TypeError("json: cannot unmarshal object into Go struct field IAMPolicyDoc.Statement")
        statements = []
        for statement in found:
            made = {key: statement[key] for key in _ORDER if statement.get(key) not in (None, "", [], {})}
            for key in ("Principal", "NotPrincipal"):
                if key in made:
                    made[key] = _principals([("*", "*")] if isinstance(made[key], str) else [*made[key].items()])
            if condition := made.get("Condition"):
                made["Condition"] = _conditions(
                    [(test, name, _many(one)) for test, keys in condition.items() for name, one in keys.items()]
                )
            statements.append(made)
    except (ValueError, TypeError, AttributeError) as error:
        raise RefusedError(f"{_FAILED}merging {which}: {error}") from error
    return {"Version": document.get("Version", ""), "Id": document.get("Id", ""), "Statement": statements}


def _merge(into: Properties, new: Mapping[str, Any]) -> None:
    """Add the statements; one with the Sid of an earlier one takes its place."""
    into["Id"] = new["Id"] or into.get("Id", "")
    into["Version"] = max(new["Version"], into.get("Version", ""))
    statements: list[Any] = into.setdefault("Statement", [])
    for statement in new["Statement"]:
        sid = statement.get("Sid")
        place = next((i for i, one in enumerate(statements) if sid and one.get("Sid") == sid), len(statements))
        statements[place : place + 1] = [statement]


def _check_sid(sid: str, seen: set[str], text: str) -> None:
    if sid in seen:
        raise RefusedError(_FAILED + text.format(sid))
    if sid:
        seen.add(sid)


def _principals(blocks: Sequence[tuple[str, str | list[str]]]) -> Any:
    if len(blocks) == 1 and blocks[0] in (("*", "*"), ("*", ["*"])):
        return "*"
    found: dict[str, str | list[str]] = {}
    for kind, identifiers in blocks:
        more = identifiers if isinstance(identifiers, str) else sorted(identifiers, reverse=True)
        found[kind] = [*_many(found[kind]), *_many(more)] if kind in found else more
    return {kind: found[kind] for kind in sorted(found)}


def _conditions(blocks: Sequence[tuple[str, str, list[str]]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, list[str]]] = {}
    for test, variable, values in blocks:
        found.setdefault(test, {}).setdefault(variable, []).extend(values)
    return {test: {key: _one(found[test][key]) for key in sorted(found[test])} for test in sorted(found)}


def _filled(values: Sequence[str], version: str) -> list[str]:
    """With the variables, which a program writes as `&{...}`."""
    for value in values if version == _OLD else ():
        if "&{" in value:
            raise RefusedError(f"found &{{ sequence in ({value}), which is not supported in document version {_OLD}")
    return [value.replace("&{", "${") for value in values]


def _many(value: Any) -> list[str]:
    """The values of a document's key; a flag is text for the provider."""
    values = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in values]


def _sorted(values: Sequence[str]) -> Any:
    return _one(sorted(set(values), reverse=True))


def _one(values: list[str]) -> Any:
    return values[0] if len(values) == 1 else values


def _written(document: Mapping[str, Any], indent: int | None = None) -> str:
    """As Go writes JSON: three characters of HTML are escaped, and nothing else is."""
    separators = None if indent else (",", ":")
    statements = [
        {key: one[key] for key in _ORDER if one.get(key) not in (None, "")} for one in document.get("Statement", ())
    ]
    whole = {**document, **({"Statement": statements} if statements else {})}
    text = json.dumps(whole, indent=indent, separators=separators, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
