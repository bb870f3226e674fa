"""Property values between the engine's protobuf structs and plain Python.

On the wire, unknown values and secrets are sentinels (`pulumi.runtime.rpc`). Here an unknown is `UNKNOWN` and a
secret is a `Secret` around its value. Resource references never arrive: the providers' handshake declines them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import struct_pb2
from pulumi.runtime import rpc

from karpstack.rehearsal.attachment.resource import UNKNOWN, Properties, Unknown

#: What the engine writes for an unknown bool, number, string, list, asset, archive and object
#: (sdk/go/common/resource/plugin/rpc.go); the Python SDK names only the one for strings.
_UNKNOWNS: Final = frozenset(
    {
        rpc.UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
_SIGNATURE: Final = rpc._special_sig_key
_SECRET: Final = rpc._special_secret_sig


@dataclass(frozen=True)
class Secret:
    """A secret value; its `repr` does not show it."""

    value: Any = field(repr=False)


def decode(struct: struct_pb2.Struct) -> Properties:
    """Properties of a request, with `UNKNOWN` and `Secret` in place of the sentinels.

    Whole numbers become `int` (JSON has one kind of number; the clouds' clients tell 3 from 3.0).
    """
    return {name: _decode(value) for name, value in struct.fields.items()}


def _decode(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [_decode(item) for item in value.list_value.values]
    if kind == "struct_value":
        fields = value.struct_value.fields
        if _SIGNATURE in fields and fields[_SIGNATURE].string_value == _SECRET:
            return Secret(_decode(fields["value"]))
        return decode(value.struct_value)
    return None


def encode(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The opposite of `decode`.

    Raises:
        TypeError: A value has no form on the wire; the text names its path.
    """
    struct = struct_pb2.Struct()
    for name, value in properties.items():
        _encode(value, struct.fields[name], name)
    return struct


def _encode(value: Any, into: struct_pb2.Value, path: str) -> None:
    if value is None:
        into.null_value = struct_pb2.NULL_VALUE
    elif isinstance(value, Unknown):
        into.string_value = rpc.UNKNOWN
    elif isinstance(value, Secret):
        _encode({_SIGNATURE: _SECRET, "value": value.value}, into, path)
    elif isinstance(value, bool):
        into.bool_value = value
    elif isinstance(value, int | float):
        into.number_value = value
    elif isinstance(value, str):
        into.string_value = value
    elif isinstance(value, Mapping):
        into.struct_value.SetInParent()  # an empty map is a map, not a value without a kind
        for name, item in value.items():
            _encode(item, into.struct_value.fields[str(name)], f"{path}.{name}")
    elif isinstance(value, list | tuple):
        into.list_value.SetInParent()
        for index, item in enumerate(value):
            _encode(item, into.list_value.values.add(), f"{path}[{index}]")
    else:
        raise TypeError(f"{path}: a value of type {type(value).__name__} cannot be sent to the engine")


def reveal(value: Any) -> Any:
    """The same value without `Secret` wrappers."""
    if isinstance(value, Secret):
        return reveal(value.value)
    if isinstance(value, dict):
        return {name: reveal(item) for name, item in value.items()}
    if isinstance(value, list):
        return [reveal(item) for item in value]
    return value


def has_secrets(value: Any) -> bool:
    """Whether a `Secret` is anywhere in it."""
    return isinstance(value, Secret) or any(has_secrets(item) for item in _items(value))


def keep_secrets(values: Mapping[str, Any], pattern: Mapping[str, Any]) -> Properties:
    """Wrap in `values` what is secret under the same name in `pattern`.

    Maps are followed name by name; a list with a secret in it becomes secret as a whole, because its order may
    have changed. That is the rule by which the engine itself carries secrets over.
    """
    kept = dict(values)
    for name, example in pattern.items():
        if name not in kept or isinstance(kept[name], Secret):
            continue
        if isinstance(kept[name], dict) and isinstance(example, dict):
            kept[name] = keep_secrets(kept[name], example)
        elif has_secrets(example):
            kept[name] = Secret(kept[name])
    return kept


def _items(value: Any) -> list[Any]:
    if isinstance(value, Secret):
        return [value.value]
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
