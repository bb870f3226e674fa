"""The stack's configuration: typed, and refused as a whole before anything is created when it cannot work.

Its models are the arguments of the environments: each setting and each default stands there alone. The only package
that reads configuration. `load` is pure and takes the raw values; `read` takes them from the Pulumi engine. Every
error says which key, which value, what would happen, and what to do; all of them come at once. Not checked here: what
only the cloud knows (whether a role exists). Karpenter's own specs are checked as the API server does it, against the
CRDs.

A further setting is a field of its section, its use by a component, and its line in
tests/unit/test_settings_arrive.py, which fails for a setting that arrives nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

from pulumi import log
from pulumi.runtime import config as runtime_config
from pydantic import ValidationError

from karpstack.karpenter import fact_dates
from karpstack.karpenter.findings import Finding

from ..problems import NAMESPACE, SettingsError, finding, from_pydantic, key_of, without
from . import aks_checks, aks_existing_checks, eks_checks, eks_existing_checks, facts_checks
from .aks import AksSettings
from .aks_existing import ExistingAksSettings
from .eks import EksSettings
from .eks_existing import ExistingEksSettings
from .raw import structured
from .schema_checks import schema_checks

__all__ = [
    "AksSettings",
    "EksSettings",
    "ExistingAksSettings",
    "ExistingEksSettings",
    "Settings",
    "is_rehearsed",
    "load",
    "read",
    "refuse_contradictions",
]

Settings = EksSettings | ExistingEksSettings | AksSettings | ExistingAksSettings


class _Cloud(NamedTuple):
    """How one cloud's configuration is checked, or that of a cluster there which somebody else has made.

    Attributes:
        name: As `karpstack:cloud` and Karpenter's schemas call it.
        schema: Each section by itself.
        cross_checks: Rules between sections and about what exists, which get the valid sections by the names of the
            schema's fields, and the day.
    """

    name: str
    schema: type[EksSettings] | type[ExistingEksSettings] | type[AksSettings] | type[ExistingAksSettings]
    cross_checks: Callable[[Mapping[str, Any], date], Iterator[Finding]]


_CLOUDS: Final[Mapping[object, _Cloud]] = {
    "aws": _Cloud("aws", EksSettings, eks_checks.cross_checks),
    "azure": _Cloud("azure", AksSettings, aks_checks.cross_checks),
}
#: The same for a cluster that is there, by the name of the cloud.
_EXISTING: Final[Mapping[str, _Cloud]] = {
    "aws": _Cloud("aws", ExistingEksSettings, eks_existing_checks.cross_checks),
    "azure": _Cloud("azure", ExistingAksSettings, aks_existing_checks.cross_checks),
}


def read(given: Mapping[str, str] | None = None) -> Settings:
    """The configuration of the stack that the engine runs.

    All keys of the namespace are read, not only the known ones: `pulumi.Config` cannot list them.

    Args:
        given: All of the namespace, where it is not the stack's configuration that says it.

    Raises:
        SettingsError: It cannot work.
    """
    # The engine's Python host hands the configuration over in the environment, the inline host through CONFIG.
    raw = {**runtime_config.get_config_env(), **runtime_config.CONFIG.get()}
    secret = {*runtime_config.get_config_secret_keys_env(), *filter(runtime_config.is_config_secret, raw)}
    if given is not None:
        raw = {**{key: value for key, value in raw.items() if not key.startswith(f"{NAMESPACE}:")}, **given}
    return load(raw, secret_keys=secret, simulated=is_rehearsed(), warn=lambda problem: log.warn(str(problem)))


def is_rehearsed() -> bool:
    """Whether this process belongs to a rehearsal, by its control endpoint; its account has what the facts have."""
    return bool(os.environ.get("KARPSTACK_REHEARSAL_URL"))


def load(
    raw: Mapping[str, str],
    *,
    secret_keys: Iterable[str] = (),
    today: date | None = None,
    simulated: bool = False,
    warn: Callable[[Finding], object] = lambda problem: None,
) -> Settings:
    """Check raw configuration.

    Args:
        raw: Full keys (`karpstack:network`, `aws:region`) to values as the engine gives them: strings, with
            objects and lists as JSON. Namespaces of which nothing is needed are ignored.
        secret_keys: Full keys whose values no message may show.
        today: The day that decides which versions the cloud offers; the present one if it is not given.
        simulated: Whether the account is simulated.
        warn: Gets what may be wrong and is not refused; called only where nothing is.

    Raises:
        SettingsError: It cannot work; holds every problem that was found.
    """
    name = raw.get(key_of("cloud"))
    cloud = _CLOUDS.get(name)
    if cloud is None:
        raise SettingsError([finding("cloud-unknown", "cloud", name, clouds=" or ".join(map(str, _CLOUDS)))])
    foreign = {key for field in cloud.schema.model_fields.values() if ":" in (key := str(field.validation_alias))}
    values, problems = structured(
        {
            key: value
            for key, value in raw.items()
            if key.startswith(f"{NAMESPACE}:") or key in foreign or key.lower() in cloud.schema.REFUSED
        }
    )
    settings = None
    if not problems:
        day = today or fact_dates.today()
        judged = fact_dates.played(cloud.name, day) if simulated else day
        settings, problems = _checked(_for_cluster(cloud, values), values, judged)
        accepted = str(values.get(key_of("acceptOldFacts"))).lower() == "true"
        region = str(values.get(str(cloud.schema.model_fields["region"].validation_alias)))
        problems += facts_checks.old_facts(cloud.name, region, day, accepted=accepted, simulated=simulated)
    secrets = {key: values.get(key, "") for key in secret_keys}
    refused, doubtful = _parted(without(secrets, problem) for problem in problems)
    if settings is None or refused:
        raise SettingsError(refused)
    for problem in doubtful:
        warn(problem)
    return settings


def refuse_contradictions(settings: Settings) -> None:
    """Check what `load` checks beyond a section, for settings that a program has made.

    Raises:
        SettingsError: Sections contradict each other, or the API server would refuse a NodePool or node class.
    """
    is_there = isinstance(settings, ExistingEksSettings | ExistingAksSettings)
    cloud = (_EXISTING if is_there else _CLOUDS)[settings.cloud]
    refused, _ = _parted(_beyond_sections(cloud, dict(settings), [], fact_dates.today()))
    if refused:
        raise SettingsError(refused)


def _for_cluster(cloud: _Cloud, values: Mapping[str, Any]) -> _Cloud:
    """How a configuration is checked, which may name a cluster that is there."""
    cluster = values.get(key_of("cluster"))
    names_one = isinstance(cluster, Mapping) and "existing" in cluster
    return _EXISTING[cloud.name] if names_one else cloud


def _parted(problems: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Those that are refused, and the warnings; each once."""
    each = list(dict.fromkeys(problems))
    return [one for one in each if not one.warning], [one for one in each if one.warning]


def _checked(cloud: _Cloud, values: Mapping[str, Any], today: date) -> tuple[Settings | None, list[Finding]]:
    """The settings, None where a section is not valid by itself; and everything that is wrong."""
    valid: dict[str, Any] = {}
    problems: list[Finding] = []
    settings = None
    try:
        settings = cloud.schema.model_validate(
            {key.removeprefix(f"{NAMESPACE}:"): value for key, value in values.items()},
            context=valid,
            by_alias=True,
            by_name=False,  # the names of fields are for programs; in a stack's file they are misspelt
        )
    except ValidationError as error:
        found = [from_pydantic(details, cloud.schema) for details in error.errors()]
        # A value that fits no branch of a union is reported once a branch; once is enough.
        problems += {problem.key: problem for problem in reversed(found)}.values()
    return settings, _beyond_sections(cloud, valid, problems[::-1], today)


def _beyond_sections(cloud: _Cloud, valid: Mapping[str, Any], problems: list[Finding], today: date) -> list[Finding]:
    """The problems, and those of sections with each other, with what exists, and of Karpenter's specs."""
    problems = [*problems, *cloud.cross_checks(valid, today)]
    return [*problems, *schema_checks(cloud.name, valid, problems)]
