"""Identity: what IAM policies allow. Does not judge who may assume a role (trust.py), or policies on resources."""

import re
from fnmatch import fnmatchcase
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from .iam_documents import covers, documents, listed
from .rule import Judgement, Properties, ResourceRule, section
from .tokens import (
    IAM_ATTACHMENTS_EXCLUSIVE,
    IAM_GROUP_POLICY,
    IAM_GROUP_POLICY_ATTACHMENT,
    IAM_POLICY,
    IAM_POLICY_ATTACHMENT,
    IAM_ROLE,
    IAM_ROLE_POLICY,
    IAM_ROLE_POLICY_ATTACHMENT,
    IAM_USER_POLICY,
    IAM_USER_POLICY_ATTACHMENT,
)

# AWS's own policies that grant whole services.
_BROAD_POLICY = re.compile(
    r"arn:[^:]+:iam::aws:policy/(.*/)?(AdministratorAccess.*|PowerUserAccess|\w*FullAccess.*|\w*ReadWrite\w*"
    r"|SystemAdministrator|DatabaseAdministrator|NetworkAdministrator|DataScientist)"
)
_ARN_PARTS = 6
_ONE_ROLE = re.compile(r"arn:[^:*?]+:iam::\d{12}:role/[^*?]+")


def _wildcard_actions(where: str, statement: Properties, judgement: Judgement) -> None:
    if "NotAction" in set(statement):
        judgement.violation(f"{where} allows all actions but those in NotAction.")
    allowed = {entry["action"].lower() for entry in judgement.settings["allowedActions"]}
    actions = listed(statement.get("Action"))
    for index in range(len(actions)):
        with judgement.part():
            action = actions[index]
            if ("*" in action or "?" in action) and action.lower() not in allowed:
                judgement.violation(f"{where} allows {action}.")


def _role(role: Properties, judgement: Judgement) -> None:
    with judgement.part():
        documents(_wildcard_actions)(role, judgement)
    _managed_policies("managedPolicyArns", role, judgement)


def _attachments(attachments: Properties, judgement: Judgement) -> None:
    _managed_policies("policyArns", attachments, judgement)


def _managed_policies(path: str, holder: Properties, judgement: Judgement) -> None:
    arns = holder.get(path) or []
    for index in range(len(arns)):
        _managed_policy(f"{path}[{index}]", arns, index, judgement)


def _attachment(attachment: Properties, judgement: Judgement) -> None:
    if "policyArn" in set(attachment):
        _managed_policy("policyArn", attachment, "policyArn", judgement)


def _managed_policy(path: str, holder: Any, key: str | int, judgement: Judgement) -> None:
    try:
        arn = holder[key]
    except UnknownValueError:
        # The ARNs of AWS's own policies are constants. One that is unknown is that of a policy yet to
        # be made, and judged itself; a line for each attachment would bury the findings.
        return
    if arn and _BROAD_POLICY.fullmatch(arn):
        judgement.violation(f"{path} is {arn}, which allows whole services.")


def _wildcard_resources(where: str, statement: Properties, judgement: Judgement) -> None:
    resources = listed(statement.get("Resource"))
    anything = "NotResource" in set(statement)
    for index in range(len(resources)):
        with judgement.part():
            anything = anything or _is_everything(resources[index])
    if not anything:
        return
    allowed = [entry["action"].lower() for entry in judgement.settings["allowedActions"]]
    actions = listed(statement.get("Action"))
    for index in range(len(actions)):
        with judgement.part():
            if not any(fnmatchcase(actions[index].lower(), pattern) for pattern in allowed):
                judgement.violation(f"{where} allows {actions[index]} on every resource.")


def _is_everything(arn: str) -> bool:
    """Return whether a pattern leaves the service open, or the resource from its first letter on."""
    if not set(arn) & set("*?"):
        return False
    parts = arn.split(":", _ARN_PARTS - 1)
    return len(parts) < _ARN_PARTS or bool(set(parts[2]) & set("*?")) or parts[-1][:1] in ("*", "?")


def _pass_role(where: str, statement: Properties, judgement: Judgement) -> None:
    if not covers(statement, "iam:passrole"):
        return
    with judgement.part():
        roles = listed(statement.get("Resource"))
        if not roles:
            judgement.violation(f"{where} passes all roles but those in NotResource.")
        for index in range(len(roles)):
            with judgement.part():
                if not _ONE_ROLE.fullmatch(roles[index]):
                    judgement.violation(f"{where} passes {roles[index]}, which is not the ARN of one role.")
    services = _passed_to(section(statement, "Condition"))
    if not services:
        judgement.violation(f"{where} has no condition on iam:PassedToService.")
    for index in range(len(services)):
        with judgement.part():
            if "*" in services[index] or "?" in services[index]:
                judgement.violation(f"{where} passes to {services[index]}, which is not one service.")


def _passed_to(condition: Properties) -> Any:
    """The services that the condition names; none where it doesn't restrict them."""
    for operator in ("StringEquals", "StringLike"):
        for key, services in section(condition, operator).items():
            if key.lower() == "iam:passedtoservice":
                return listed(services)
    return []


_ALLOWED_ACTION = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "minLength": 1},
        "reason": {"type": "string", "minLength": 1},
    },
    "required": ["action", "reason"],
    "additionalProperties": False,
}

IAM_NO_WILDCARD_ACTION = ResourceRule(
    name="iam-no-wildcard-action",
    settings={
        "allowedActions": {
            "type": "array",
            "items": _ALLOWED_ACTION,
            "default": [],
        },
    },
    checks={
        IAM_POLICY: documents(_wildcard_actions),
        IAM_GROUP_POLICY: documents(_wildcard_actions),
        IAM_ROLE_POLICY: documents(_wildcard_actions),
        IAM_USER_POLICY: documents(_wildcard_actions),
        IAM_ROLE: _role,
        IAM_POLICY_ATTACHMENT: _attachment,
        IAM_GROUP_POLICY_ATTACHMENT: _attachment,
        IAM_ROLE_POLICY_ATTACHMENT: _attachment,
        IAM_USER_POLICY_ATTACHMENT: _attachment,
        **dict.fromkeys(IAM_ATTACHMENTS_EXCLUSIVE, _attachments),
    },
)

IAM_NO_WILDCARD_RESOURCE = ResourceRule(
    name="iam-no-wildcard-resource",
    settings={
        "allowedActions": {
            "type": "array",
            "items": _ALLOWED_ACTION,
            "default": [
                {"action": "ec2:Describe*", "reason": "EC2 supports ARNs for hardly any Describe call"},
                {
                    "action": "elasticloadbalancing:Describe*",
                    "reason": "Elastic Load Balancing supports ARNs for no Describe call",
                },
                {
                    "action": "elasticloadbalancing:SetWebAcl",
                    "reason": "lets WAF act on load balancers; AWS has no ARN for it",
                },
                {"action": "pricing:GetProducts", "reason": "prices are not resources of an account"},
                {"action": "acm:ListCertificates", "reason": "a list of certificates has no resource"},
                {"action": "iam:ListServerCertificates", "reason": "a list of certificates has no resource"},
                {"action": "iam:ListInstanceProfiles", "reason": "a list of instance profiles has no resource"},
                {
                    "action": "arc-zonal-shift:GetManagedResource",
                    "reason": "is limited by the condition key arc-zonal-shift:ResourceIdentifier",
                },
            ],
        },
    },
    checks={
        IAM_POLICY: documents(_wildcard_resources),
        IAM_GROUP_POLICY: documents(_wildcard_resources),
        IAM_ROLE_POLICY: documents(_wildcard_resources),
        IAM_USER_POLICY: documents(_wildcard_resources),
        IAM_ROLE: documents(_wildcard_resources),
    },
)

IAM_PASS_ROLE_SCOPED = ResourceRule(
    name="iam-pass-role-scoped",
    checks={
        IAM_POLICY: documents(_pass_role),
        IAM_GROUP_POLICY: documents(_pass_role),
        IAM_ROLE_POLICY: documents(_pass_role),
        IAM_USER_POLICY: documents(_pass_role),
        IAM_ROLE: documents(_pass_role),
    },
)
