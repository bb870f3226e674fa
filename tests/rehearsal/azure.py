"""What both AKS environments need: a hand in the simulated subscription behind Pulumi's back, as somebody with the
portal open has it, and what is asked of both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import psutil
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from tests import stories
from tests.rehearsal.conftest import RehearsedStack, descendants

# A story with a NodePool of its own, on the node class that both environments have.
STORY = "nap-weight-pinned"


def resource(stack: RehearsedStack, name: str) -> dict[str, Any]:
    """A resource of the stack's state by its logical name."""
    exported = stack.done("pulumi", "stack", "export", "--non-interactive")
    resources = json.loads(exported)["deployment"]["resources"]
    (found,) = [dict(one) for one in resources if one["urn"].endswith(f"::{name}")]
    return found


def delete(stack: RehearsedStack, name: str) -> dict[str, Any]:
    """Delete what the cloud has of a resource; as it was."""
    found = resource(stack, name)
    with _provider(stack) as provider:
        provider.Delete(provider_pb2.DeleteRequest(**_reference(found), properties=_struct(found["outputs"])))
    return found


def change(stack: RehearsedStack, name: str, **properties: Any) -> dict[str, Any]:
    """Change properties of what the cloud has of a resource; as it was."""
    found = resource(stack, name)
    given = {key: value for key, value in found["inputs"].items() if not key.startswith("__")}
    with _provider(stack) as provider:
        provider.Update(
            provider_pb2.UpdateRequest(
                **_reference(found), olds=_struct(found["outputs"]), news=_struct(given | properties)
            )
        )
    return found


def only_claim(stack: RehearsedStack, scenario: str, report: Path) -> dict[str, Any]:
    """The only NodeClaim of a story that passed."""
    stack.succeed("run", "--scenarios", scenario, "--report", str(report))
    found = stories.story(json.loads((report / "report.json").read_text()), scenario)
    assert found["passed"], found
    (claim,) = found["nodeclaims"]
    assert claim["capacity_type"] == "on-demand"
    return dict(claim)


def down(stack: RehearsedStack) -> None:
    """Destroy all that the stack made, and end every process."""
    processes = descendants(stack.info)
    output = stack.succeed("down")
    assert " deleted" in output, output
    assert not [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def flat(text: str) -> str:
    """On one line, without quoting."""
    return " ".join(text.replace("\\n", " ").replace("\\", "").replace("''", "'").split())


@contextmanager
def _provider(stack: RehearsedStack) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """A connection of our own to the provider, which is the deployer's way into the subscription."""
    with grpc.insecure_channel(f"127.0.0.1:{stack.info.providers['azure-native']}") as channel:
        provider = provider_pb2_grpc.ResourceProviderStub(channel)
        subscription = stack.configured("azure-native:subscriptionId")
        provider.Configure(provider_pb2.ConfigureRequest(args=_struct({"subscriptionId": subscription})))
        yield provider


def _reference(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in ("id", "urn", "type")}


def _struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct
