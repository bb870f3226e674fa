"""From a preview to the review: reads nothing but the stack's configuration file, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pulumi_policy import PolicyProviderResource
from rules.clouds import CLOUDS
from rules.facts import facts
from rules.regions import Regions
from rules.rule import Rule

from .changes import changes, count_components, counts
from .configuration import exceptions
from .engine import Resource, by_urn, checked, resources
from .findings import Verdicts
from .model import Review, RuleText, Verdict
from .permissions import permissions
from .places import Places
from .pools import assumed_images, cost, pools
from .preview import Preview


def assemble(
    preview: Preview,
    rules: Iterable[Rule],
    stack: str,
    configuration: Path,
    uri: str,
    settings: Mapping[str, Any],
    settings_name: str,
) -> Review:
    """The review of a preview.

    Args:
        preview: What the engine said.
        rules: The pack's.
        stack: Name of the stack, where the preview does not tell it.
        configuration: The stack's configuration file, for line numbers.
        uri: The same, as the documents call it.
        settings: The pack's configuration.
        settings_name: What the documents call that.
    """
    declared = resources(preview.digest)
    by_name = {rule.name: rule for rule in rules}
    project, named = _identity(preview)
    places = Places(configuration, project, uri)
    verdicts = Verdicts(preview.events, by_name, by_urn(declared), exceptions(settings), places)
    regions = _regions(declared, preview.digest.config)
    known = partial(facts, regions=regions)
    node_pools = pools(declared, known, places, settings)
    entries, granted = permissions(declared)
    return Review(
        stack=named or stack,
        project=project,
        configuration=uri,
        pack_configuration=settings_name,
        pack_version=next((event.version for event in preview.events if event.version), ""),
        verdict=_verdict(preview),
        assumed=assumed_images(declared),
        failures=preview.failures,
        counts=counts(preview.digest),
        beside=count_components(preview.digest),
        changes=changes(preview.digest),
        findings=verdicts.findings,
        excused=verdicts.excused,
        not_judged=verdicts.not_judged,
        cost=cost(node_pools, declared, settings, regions),
        pools=node_pools,
        entries=entries,
        permissions=granted,
        rules=tuple(_text(rule) for rule in by_name.values()),
    )


def _verdict(preview: Preview) -> Verdict:
    if preview.failures:
        return "failed"
    return "refused" if preview.refused else "passed"


def _identity(preview: Preview) -> tuple[str, str]:
    """Project and stack, from the URNs."""
    urns = [step.urn for step in preview.digest.steps] + [event.urn for event in preview.events]
    for urn in urns:
        parts = urn.removeprefix("urn:pulumi:").split("::")
        if len(parts) > 2:
            return parts[1], parts[0]
    return "karpstack", ""


def _regions(declared: Iterable[Resource], config: Mapping[str, str]) -> Regions:
    regions = Regions()
    for resource in declared:
        if resource.provider:
            token, inputs = resource.provider
            regions.note(resource.token, resource.checked, PolicyProviderResource(token, checked(inputs), "", ""))
    for cloud, traits in CLOUDS.items():
        if region := config.get(f"{traits.package}:{traits.region}"):
            regions.configured(cloud, region)
    return regions


def _text(rule: Rule) -> RuleText:
    return RuleText(
        name=rule.name,
        group=rule.group,
        severity=rule.severity.value,
        description=rule.description,
        rationale=rule.rationale,
        consequence=rule.consequence,
        remediation=rule.remediation,
        url=rule.url,
    )
