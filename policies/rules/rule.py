"""What a rule is, and how it becomes a policy of Pulumi. Knows no cloud and no resource.

Values that are unknown at preview: pulumi-policy raises UnknownValueError when one is read, which ends the
policy and prints that it can't be run. That alone would leave the known parts of the resource unjudged. So a
check reads each part inside `judgement.part()`: what is known is judged, and the preview still says what was
not. The update, where all inputs are known, judges each resource again before it is created.

Values that are not what a rule takes them for (shapes.py), and whatever else stops a rule, are violations of it: they
name the resource, and what is there or what went wrong. So a rule never raises, and what it could not judge has not
passed it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError

from karpstack.karpenter.findings import Catalogue

from .exceptions import GRANTED
from .inputs import INPUTS, Completed
from .regions import REGIONS
from .shapes import shaped
from .tokens import plain
from .values import UnreadableError, readable

Properties = Mapping[str, Any]
_WORDS: Final = Catalogue(Path(__file__).with_name("rules.yaml"))

#: How a rule is enforced in each environment. `baseline` is the pack without configuration.
Enforcement = Mapping[str, EnforcementLevel]
ALWAYS: Enforcement = {"baseline": EnforcementLevel.MANDATORY, "production": EnforcementLevel.MANDATORY}
STRICTER_IN_PRODUCTION: Enforcement = {
    "baseline": EnforcementLevel.ADVISORY,
    "production": EnforcementLevel.MANDATORY,
}
ADVICE: Enforcement = {"baseline": EnforcementLevel.ADVISORY, "production": EnforcementLevel.ADVISORY}
PRODUCTION_ONLY: Enforcement = {
    "baseline": EnforcementLevel.DISABLED,
    "production": EnforcementLevel.MANDATORY,
}


class NotKnownError(UnknownValueError):
    """Something that the pack can't judge, for a reason other than a value that comes later.

    The engine shows it as it shows an unknown value: an advisory line, neither an alarm nor silence.
    """

    def __init__(self, what: str, *path: str) -> None:
        """`what` is said to people; `path` names the missing fact."""
        super().__init__(UNKNOWN_STRING_VALUE, list(path))
        self.message = readable(what)


def section(properties: Properties, *path: str) -> Properties:
    """The object at `path`, empty where there is none; UnknownValueError where it is unknown."""
    for name in path:
        properties = properties.get(name) or {}
    return properties


def all_tags(properties: Properties) -> Properties:
    """The tags of a resource; of AWS also those that its provider adds to all resources."""
    return Completed(section(properties, "tags"), section(properties, "tagsAll"))


class Judgement:
    """What one rule finds in one resource, or in one stack."""

    def __init__(
        self,
        rule: str,
        about: str,
        settings: Mapping[str, Any],
        report: Callable[[str, str | None], None],
    ) -> None:
        """`rule` and `about` by name; `settings` are the rule's; findings go to `report(finding, urn or None)`."""
        self._rule = rule
        self._about = about
        self.settings = settings
        self._report = report
        self._unknown: UnknownValueError | None = None
        self._failed: set[str] = set()

    @property
    def complete(self) -> bool:
        """Whether all that was to be read so far could be. While it isn't, absence can't be concluded."""
        return self._unknown is None and not self._failed

    def violation(self, finding: str, urn: str | None = None) -> None:
        """Report what is wrong, with the value; in a stack rule `urn` says where."""
        self._report(readable(finding), urn)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Judge one part: a value in it that is unknown or can't be read leaves the other parts to be judged."""
        try:
            yield
        except UnknownValueError as unknown:
            self._unknown = self._unknown or unknown
        except UnreadableError as unreadable:
            self._fail(str(unreadable), unreadable.urn)
        except Exception as error:
            # The last resort. The engine would end the run, and say neither rule nor resource.
            fault = f"a fault of the rule {self._rule}, or an unexpected value"
            self._fail(f"{self._about} can't be judged: {error!r}. That is {fault}.")

    def _fail(self, finding: str, urn: str | None = None) -> None:
        """Report once what could not be judged."""
        if finding not in self._failed:
            self._failed.add(finding)
            self.violation(finding, urn)

    def close(self) -> None:
        """Raise the first unknown value that was met, so that the preview says what could not be judged."""
        if self._unknown is not None:
            raise self._unknown


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What must hold, why, what happens otherwise, what to do about it and where that is documented.

    The words of a rule stand in rules.yaml, by its name. `settings` is the JSON schema of each setting by its
    name, and each has a default, which is the baseline's; `production` has the values that differ there.
    """

    name: str
    enforcement: Enforcement = field(default_factory=lambda: ALWAYS)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    production: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The heading under which the reference has it."""
        return _WORDS.entries[self.name]["group"]

    @property
    def description(self) -> str:
        """What must hold: the first line of each violation."""
        return _WORDS.entries[self.name]["description"]

    @property
    def rationale(self) -> str:
        """Why."""
        return _WORDS.entries[self.name]["rationale"]

    @property
    def consequence(self) -> str:
        """What happens otherwise."""
        return _WORDS.entries[self.name]["consequence"]

    @property
    def remediation(self) -> str:
        """What to do about it."""
        return _WORDS.entries[self.name]["remediation"]

    @property
    def url(self) -> str:
        """Where that is documented."""
        return _WORDS.entries[self.name]["url"]

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return Severity(_WORDS.entries[self.name]["severity"])

    def policy(self) -> Policy:
        """The rule in the form that a PolicyPack takes."""
        raise NotImplementedError

    def report_text(self, finding: str) -> str:
        """What is reported of a finding; the engine writes the description above it."""
        return f"{finding}{self._advice}"

    def finding_in(self, message: str) -> str:
        """The finding in a message of the engine: what `told` and the engine put around it is taken away."""
        return message.strip().removeprefix(self.description).removesuffix(self._advice).strip()

    @property
    def _advice(self) -> str:
        return f"\n{self.consequence}\nFix: {self.remediation}\nSee {self.url}"

    def _metadata(self) -> dict[str, Any]:
        schema = {name: dict(value) for name, value in self.settings.items()}
        return {
            "name": self.name,
            "description": self.description,
            "enforcement_level": self.enforcement["baseline"],
            "config_schema": PolicyConfigSchema(schema) if schema else None,
            "severity": self.severity,
            "remediation_steps": self.remediation,
            "url": self.url,
        }

    def _configured(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings: those that are given, else the defaults; ValueError for one that the rule does not have."""
        # The engine checks configured values against the schema, but lets unknown names pass.
        if unknown := sorted(set(given) - set(self.settings)):
            raise ValueError(
                f"the policy {self.name} has no setting {', '.join(unknown)}, so it would have no effect; "
                f"correct the pack's configuration: it has {', '.join(self.settings) or 'no settings'}"
            )
        return {name: schema["default"] for name, schema in self.settings.items()} | dict(given)

    def _judgement(self, about: str, settings: Mapping[str, Any], report: ReportViolation, urn: str = "") -> Judgement:
        def violation(finding: str, found_in: str | None) -> None:
            if not GRANTED.excuses(self.name, found_in or urn, finding):
                report(self.report_text(finding), found_in)

        return Judgement(self.name, about, settings, violation)


@dataclass(frozen=True, kw_only=True)
class ResourceRule(Rule):
    """A rule about single resources, judged by their inputs before anything is created.

    `checks` has a function for each resource token that the rule is about; `before` is given the rule's
    settings ahead of any resource, whatever its token.
    """

    checks: Mapping[str, Callable[[Properties, Judgement], None]]
    before: Callable[[Properties], None] | None = None

    def policy(self) -> Policy:
        """The rule in the form that a PolicyPack takes."""
        return ResourceValidationPolicy(validate=self._validate, **self._metadata())

    def _validate(self, args: ResourceValidationArgs, report: ReportViolation) -> None:
        settings = self._configured(args.get_config())
        token = plain(args.resource_type)
        REGIONS.note(token, args.props, args.provider)
        INPUTS.note(args.urn, args.props)
        if self.before is not None:
            self.before(settings)
        check = self.checks.get(token)
        if check is None:
            return
        judgement = self._judgement(args.name, settings, report, args.urn)
        with judgement.part():
            check(shaped(token, args.props), judgement)
        judgement.close()


@dataclass(frozen=True, kw_only=True)
class StackRule(Rule):
    """A rule about how resources fit together, judged by what is known of all of them: outputs, else inputs."""

    check: Callable[[list[PolicyResource], Judgement], None]

    def policy(self) -> Policy:
        """The rule in the form that a PolicyPack takes."""
        return StackValidationPolicy(validate=self._validate, **self._metadata())

    def _validate(self, args: StackValidationArgs, report: ReportViolation) -> None:
        judgement = self._judgement("the stack", self._configured(args.get_config()), report)
        for resource in args.resources:
            known = INPUTS.completing(resource.urn, resource.props)
            resource.resource_type = plain(resource.resource_type)
            resource.props = shaped(resource.resource_type, known, resource.urn)
        with judgement.part():
            self.check(args.resources, judgement)
        judgement.close()
