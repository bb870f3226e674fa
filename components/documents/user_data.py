"""User data of nodes on EKS: the way out of the network, and a user's own beside it.

Amazon Linux 2023 is told of a proxy by nodeadm's NodeConfig (`spec.instance.environment`, awslabs/amazon-eks-ami,
nodeadm/doc/api.md), which nodeadm uses itself and hands to all services. Certificates and mirrors are files, which a
script writes: cloud-init runs it before nodeadm starts containerd and the kubelet (nodeadm-run.service is after
cloud-final.service). Karpenter and EKS's managed node groups put their own NodeConfig behind what is here.

Bottlerocket has settings for all of it (bottlerocket.dev: settings.network, settings.pki, settings.container-registry),
to which Karpenter adds its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from email.message import Message
from email.parser import Parser
from typing import Any, Final, NamedTuple

from .proxy import Egress, fingerprint

#: Bytes of user data that EC2 takes, before they are encoded in base64.
LIMIT: Final = 16_384
#: Of these, what Karpenter or EKS adds: the cluster's address and certificate, labels, taints, the kubelet's settings.
_ADDED: Final = 4_096
#: Release of the AL2023 image from which nodeadm knows `environment`: awslabs/amazon-eks-ami v20251007 (#2384).
KNOWS_ENVIRONMENT: Final = 20251007

_NODE_CONFIG: Final = "application/node.eks.aws"
_SCRIPT: Final = 'text/x-shellscript; charset="us-ascii"'
#: What a NodeConfig says of itself.
_KIND: Final = re.compile(r"""["']?kind["']?\s*:\s*["']?NodeConfig\b""")
_ANCHORS: Final = "/etc/pki/ca-trust/source/anchors"
#: The first of nodeadm's folders for hosts of registries (nodeadm/internal/containerd/config2.template.toml).
_HOSTS: Final = "/etc/containerd/certs.d"


class UserDataError(ValueError):
    """A node class's own user data cannot be kept beside what the stack adds."""

    def __init__(self, code: str, **words: Any) -> None:
        """`code` is that of the finding that says it, `words` what stands in its text."""
        super().__init__(code, words)
        self.code, self.words = code, words


class _Part(NamedTuple):
    """A part of a MIME archive: its headers, and its text as it is."""

    headers: Mapping[str, str]
    text: str

    @property
    def kind(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def family(node_class: Mapping[str, Any]) -> str:
    """The family of a node class's images, in lower case: `al2023`, `bottlerocket`, `custom`; empty if it says none."""
    if named := node_class.get("amiFamily"):
        return str(named).lower()
    terms = node_class.get("amiSelectorTerms")
    aliases = [str(term["alias"]) for term in terms or [] if isinstance(term, Mapping) and term.get("alias")]
    return aliases[0].partition("@")[0].lower() if aliases else ""


def node_class_user_data(node_class: Mapping[str, Any], egress: Egress) -> str | None:
    """User data of a node class, its own with what the stack adds; None for none.

    That of families other than Amazon Linux 2023 and Bottlerocket stays as it is.

    Raises:
        UserDataError: Its own cannot be read or kept, or together they are too long.
    """
    own = str(node_class.get("userData") or "")
    made = own
    if egress.for_nodes and family(node_class) in FAMILIES:
        made = FAMILIES[family(node_class)](egress, own)
        if (size := len(made.encode())) > LIMIT - _ADDED:
            raise UserDataError("user-data-too-long", size=size, limit=LIMIT, added=_ADDED)
    return made or None


def al2023(egress: Egress, own: str = "") -> str:
    """User data of Amazon Linux 2023, a MIME archive; the user's own parts come last, and run last.

    Raises:
        UserDataError: The user's own cannot be read.
    """
    ours = []
    if egress.variables:
        environment = {"default": both_cases(egress.variables)}
        config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig"}
        # JSON is YAML.
        text = json.dumps({**config, "spec": {"instance": {"environment": environment}}}, indent=2) + "\n"
        ours.append(_Part({"Content-Type": _NODE_CONFIG}, text))
    if egress.certificates or egress.mirrors:
        ours.append(_Part({"Content-Type": _SCRIPT}, _script(egress)))
    return _archive([*ours, *_parts(own)])


def bottlerocket(egress: Egress, own: str = "") -> str:
    """User data of Bottlerocket, in TOML; a table that the user has too holds both.

    Raises:
        UserDataError: Both set a key, or the user's own is no TOML, or writes a table so that nothing can be added.
    """
    network: dict[str, Any] = {}
    if egress.variables:
        # It has no setting for http://, and tells NO_PROXY of localhost, the API server and .cluster.local by itself.
        network = {"no-proxy": egress.variables.get("NO_PROXY", "").split(",")}
        if "HTTPS_PROXY" in egress.variables:
            network = {"https-proxy": egress.variables["HTTPS_PROXY"], **network}
    pki = {
        f"karpstack-{fingerprint(pem)}": {"data": base64.b64encode(pem.encode()).decode(), "trusted": True}
        for pem in egress.certificates
    }
    mirrors = [{"registry": one, "endpoint": [_endpoint(to)]} for one, to in egress.mirrors.items()]
    theirs = _toml(own)
    _refuse_twice(theirs, network, mirrors)

    text = own
    if network:
        text = _in_table(text, "settings.network", _assignments(network))
    for name, bundle in pki.items():
        text = _in_table(text, f"settings.pki.{name}", _assignments(bundle))
    for mirror in mirrors:
        text = _ended(text) + f"[[settings.container-registry.mirrors]]\n{_assignments(mirror)}"
    ours = {
        **({"network": network} if network else {}),
        **({"pki": pki} if pki else {}),
        **({"container-registry": {"mirrors": mirrors}} if mirrors else {}),
    }
    try:
        is_both = tomllib.loads(text) == _merged(theirs, {"settings": ours})
    except tomllib.TOMLDecodeError:
        is_both = False
    if not is_both:
        raise UserDataError("user-data-closed-table")
    return text


#: What makes user data, by the family of images.
FAMILIES: Final = {"al2023": al2023, "bottlerocket": bottlerocket}


def node_configs(own: str) -> list[str]:
    """What a user's own user data holds of nodeadm's NodeConfig, in YAML.

    Raises:
        UserDataError: It cannot be read.
    """
    return [part.text for part in _parts(own) if part.kind == _NODE_CONFIG]


def both_cases(variables: Mapping[str, str]) -> dict[str, str]:
    """Variables as Go's programs read them, and as curl does, which for http:// knows small letters alone."""
    return {**variables, **{name.lower(): value for name, value in variables.items()}}


def _script(egress: Egress) -> str:
    lines = ["#!/bin/bash", "set -euo pipefail"]
    for pem in egress.certificates:
        lines += _file(f"{_ANCHORS}/karpstack-{fingerprint(pem)}.pem", pem)
    if egress.certificates:
        lines.append("update-ca-trust")
    for registry, mirror in egress.mirrors.items():
        lines += [f"mkdir -p {_HOSTS}/{registry}", *_file(f"{_HOSTS}/{registry}/hosts.toml", _hosts(mirror))]
    return "\n".join(lines) + "\n"


def _file(path: str, content: str) -> list[str]:
    return [f"cat > {path} <<'EOF'", content.rstrip("\n"), "EOF"]


def _hosts(mirror: str) -> str:
    """Where containerd asks first; where that fails, it asks the registry itself (containerd, docs/hosts.md)."""
    override = "override_path = true\n" if "/" in mirror else ""
    return f'[host."{_endpoint(mirror)}"]\ncapabilities = ["pull", "resolve"]\n{override}'


def _endpoint(mirror: str) -> str:
    """The URL of a mirror: where it is a part of a registry, its path stands behind the version of the API.

    Bottlerocket makes the same of it as `_hosts` (bottlerocket-core-kit, sources/api/thar-be-registries).
    """
    host, _, path = mirror.partition("/")
    return f"https://{host}/v2/{path}" if path else f"https://{host}"


def _parts(own: str) -> Iterator[_Part]:
    """The parts of user data, as Karpenter takes it (pkg/providers/amifamily/bootstrap/nodeadm.go).

    Raises:
        UserDataError: It begins like a MIME archive and is none.
    """
    if not own.strip():
        return
    if not own.lstrip().startswith(("MIME-Version:", "Content-Type:")):
        is_config = not own.lstrip().startswith("#!") and _KIND.search(own)
        yield _Part({"Content-Type": _NODE_CONFIG if is_config else _SCRIPT}, own)
        return
    archive = Parser().parsestr(own.lstrip())
    if not archive.is_multipart():
        raise UserDataError("user-data-without-parts")
    for part in archive.get_payload():
        if not isinstance(part, Message):
            continue
        text = part.as_string().partition("\n\n")[2] if part.is_multipart() else str(part.get_payload())
        if part.keys() or text.strip():  # an archive that is not closed has an empty one at its end
            yield _Part({name: " ".join(value.split()) for name, value in part.items()}, text)


def _archive(parts: list[_Part]) -> str:
    digest = hashlib.sha256("".join(part.text for part in parts).encode()).hexdigest()
    boundary = f"karpstack-{digest[:16]}"
    said = [f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="{boundary}"\n']
    for part in parts:
        headers = "".join(f"{name}: {value}\n" for name, value in part.headers.items())
        said.append(f"--{boundary}\n{headers}\n{part.text}")
    return "\n".join([*said, f"--{boundary}--\n"])


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserDataError("user-data-not-toml", error=error) from error


def _refuse_twice(theirs: Mapping[str, Any], network: Mapping[str, Any], mirrors: list[dict[str, Any]]) -> None:
    settings = theirs.get("settings") or {}
    twice = [f"settings.network.{key}" for key in network if key in (settings.get("network") or {})]
    their_mirrors = (settings.get("container-registry") or {}).get("mirrors") or []
    said = {mirror.get("registry") for mirror in their_mirrors if isinstance(mirror, Mapping)}
    twice += [f"a mirror of {mirror['registry']}" for mirror in mirrors if mirror["registry"] in said]
    if twice:
        raise UserDataError("user-data-set-twice", twice=twice)


def _in_table(text: str, table: str, assignments: str) -> str:
    """A text of TOML with assignments in a table, which is there or comes to its end."""
    name = r"\s*\.\s*".join(map(re.escape, table.split(".")))
    header = re.search(rf"^[ \t]*\[\s*{name}\s*\][^\n]*\n?", text, re.MULTILINE)
    if header is None:
        return _ended(text) + f"[{table}]\n{assignments}"
    return text[: header.end()].rstrip("\n") + "\n" + assignments + text[header.end() :]


def _assignments(values: Mapping[str, Any]) -> str:
    # What JSON writes of texts, truth values and lists of texts is TOML.
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {
            key: _merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
            for key in [*one, *other]
        }
    return [*one, *other] if isinstance(one, list) and isinstance(other, list) else other
