"""The stack that is looked at: its configuration, and what of it Pulumi has made already."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from karpstack.components import settings
from karpstack.components.problems import SettingsError
from karpstack.text import projects
from karpstack.text.project_file import unread_settings
from karpstack.text.yaml_file import YamlError, read

from .finding import Finding, InputError, finding

_STACK: Final = "pulumi:pulumi:Stack"
_SECONDS: Final = 120
#: What of a role in aws:assumeRoles is understood, and what sts:AssumeRole calls it.
_ROLE: Final = {"roleArn": "RoleArn", "externalId": "ExternalId", "sessionName": "RoleSessionName"}
_OF_NO_MATTER: Final = "duration"  # a look is shorter than any


class _Closed:
    def __repr__(self) -> str:
        return "a secret that only the stack's own key opens"


CLOSED: Final = _Closed()


@dataclass(frozen=True)
class Configuration:
    """A stack's configuration.

    Attributes:
        settings: As the program reads them.
        raw: Full keys to values, also of namespaces that the program does not read, such as `aws:profile`.
    """

    settings: settings.Settings
    raw: Mapping[str, Any]


@dataclass(frozen=True)
class State:
    """What Pulumi's state holds of a stack.

    Attributes:
        resources: Type and id of each resource of a provider.
        outputs: The stack's outputs; secrets are no values in there.
        unread: Why the state could not be read; empty where it was.
        protected: Names of resources that Pulumi would not delete, by their URNs.
        interrupted: Names of resources that were being made when Pulumi was killed, by their URNs.
    """

    resources: frozenset[tuple[str, str]] = frozenset()
    outputs: Mapping[str, Any] = field(default_factory=dict)
    unread: str = ""
    protected: Mapping[str, str] = field(default_factory=dict)
    interrupted: Mapping[str, str] = field(default_factory=dict)

    def has(self, type_: str, identifier: str) -> bool:
        """Whether the stack itself has made the resource of this type and id."""
        return (type_, identifier) in self.resources

    def knows(self, identifier: str) -> bool:
        """Whether the stack itself has made the resource of this id, of a cloud that does not tell upper from lower."""
        return identifier.lower() in self._lowered

    def count(self, type_: str) -> int:
        """How many resources of a type the stack has made."""
        return sum(kind == type_ for kind, _ in self.resources)

    @cached_property
    def _lowered(self) -> frozenset[str]:
        return frozenset(identifier.lower() for _, identifier in self.resources)


def not_read(state: State) -> Iterator[Finding]:
    """A state that could not be read, or lacks what was being made: that passes for somebody else's."""
    if state.unread:
        yield finding("state-not-read", "pulumi stack export", unread=state.unread)
    for name in sorted(state.interrupted.values()):
        yield finding("creation-interrupted-before-up", "pulumi stack export", name=name)


def configuration(path: Path) -> Configuration:
    """Read `Pulumi.<stack>.yaml`.

    Raises:
        UnknowableError: There is none, it cannot be read, or the program would refuse it.
    """
    readable = raw(path)
    try:
        loaded = settings.load(
            {key: _engine_text(value) for key, value in readable.items() if value is not CLOSED},
            simulated=settings.is_rehearsed(),
        )
    except SettingsError as error:
        raise InputError(f"{path.name}: {error}") from error
    return Configuration(loaded, readable)


def raw(path: Path) -> dict[str, Any]:
    """What stands under `config:`; instead of each secret, which only the stack's own key opens, `CLOSED`.

    Raises:
        UnknowableError: There is no such file, it cannot be read, or Pulumi has other settings for the stack.
    """
    try:
        content = read(path)
    except YamlError as error:
        raise InputError(
            f"{path} can't be read ({error}), so it is not known what the stack asks for; name a stack of this project"
        ) from error
    config = content.get("config") if isinstance(content, Mapping) else None
    if not isinstance(config, Mapping):
        raise InputError(f"{path} has no `config:`, so it is not known what the stack asks for; add it")
    if unread := unread_settings(path, content):
        raise InputError(unread)
    return {
        str(key): CLOSED if isinstance(value, Mapping) and set(value) == {"secure"} else value
        for key, value in config.items()
    }


def setting(values: Mapping[str, Any], section: str, key: str) -> Any:
    """A setting of the program as a stack's file has it, whether Pulumi wrote its section or a person; None if not."""
    return (projects.section(values, section) or {}).get(key)


def deployer(values: Mapping[str, Any]) -> tuple[str, tuple[dict[str, str], ...]]:
    """Whom the provider acts as: a profile of the AWS CLI, and roles that are taken with it, one with the other's.

    Returns:
        The profile, empty where none is named; and of each role what `sts:AssumeRole` is given: `RoleArn`, and
        `ExternalId` and `RoleSessionName` where they are said.

    Raises:
        UnknowableError: The roles are not what the provider takes, or have what is not understood here; or the provider
            asks other addresses than AWS's.
    """
    if values.get("aws:endpoints"):
        raise InputError(
            "aws:endpoints is not followed here, so the stack's provider would ask another account; give "
            "the addresses in AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_<SERVICE>, which both read, and remove the key"
        )
    given = values.get("aws:assumeRoles") or []
    try:
        # `pulumi config set` writes text, `--path` a list.
        roles = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        roles = None
    if not isinstance(roles, list) or not all(_is_role(role) for role in roles):
        raise InputError(
            f"aws:assumeRoles = {given!r} is no list of roles with {', '.join(_ROLE)}, all text, and nothing else, so "
            "the account can't be asked as the stack's provider would; write `[{roleArn: arn:aws:iam::...}]`, or take "
            "the role before, with aws:profile"
        )
    return str(values.get("aws:profile") or ""), tuple(
        {name: role[key] for key, name in _ROLE.items() if role.get(key)} for role in roles
    )


def _is_role(role: Any) -> bool:
    return (
        isinstance(role, dict)
        and bool(role.get("roleArn"))
        and all(key == _OF_NO_MATTER or (key in _ROLE and isinstance(value, str)) for key, value in role.items())
    )


def state(stack: str, project: Path) -> State:
    """Ask Pulumi what the stack has made. A stack that was never brought up has made nothing."""
    try:
        said = subprocess.run(
            ["pulumi", "stack", "export", "--stack", stack, "--non-interactive"],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return State(unread=str(error))
    if said.returncode:
        return State(unread=said.stderr.strip() or f"pulumi stack export ended with {said.returncode}")
    try:
        return parse(json.loads(said.stdout))
    except (ValueError, RecursionError) as error:
        return State(unread=f"pulumi stack export wrote no JSON ({error})")


def parse(exported: Any) -> State:
    """What `pulumi stack export` wrote; unread where that has another shape than the one that is known here."""
    deployment = exported.get("deployment") if isinstance(exported, Mapping) else None
    listed = (deployment.get("resources") or []) if isinstance(deployment, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(one, Mapping) and _is_known(one) for one in listed):
        version = exported.get("version") if isinstance(exported, Mapping) else None
        return State(
            unread=f"pulumi stack export wrote a state of another shape (version {version!r}): no deployment with a "
            "list of resources, each with a type and a URN; use the Pulumi that the stack is made with"
        )
    return State(
        frozenset((one["type"], one["id"]) for one in listed if one.get("custom") and one.get("id")),
        next((one.get("outputs") or {} for one in listed if one["type"] == _STACK), {}),
        protected=_names(one for one in listed if one.get("protect")),
        interrupted=_names(_interrupted((deployment or {}).get("pending_operations"))),
    )


def _interrupted(pending: Any) -> Iterator[Mapping[str, Any]]:
    """The resources of operations that were never seen to end. Of another operation, Pulumi has the resource."""
    for one in pending if isinstance(pending, list) else ():
        resource = one.get("resource") if isinstance(one, Mapping) and one.get("type") == "creating" else None
        if isinstance(resource, Mapping) and isinstance(resource.get("urn"), str):
            yield resource


def _names(resources: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {one["urn"]: one["urn"].rpartition("::")[2] for one in resources}


def _is_known(resource: Mapping[str, Any]) -> bool:
    return (
        all(isinstance(resource.get(key), str) for key in ("type", "urn"))
        and isinstance(resource.get("id", ""), str)
        and isinstance(resource.get("outputs") or {}, Mapping)
    )


def _engine_text(value: object) -> str:
    """A value as the engine hands it to programs: objects, lists and truth values as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
