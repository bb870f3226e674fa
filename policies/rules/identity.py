"""Identity: what IAM policies allow. Does not judge who may assume a role (trust.py), or policies on resources."""

import re
from fnmatch import fnmatchcase
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from .iam_documents import EXACT, covers, documents, listed
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
    r"arn:[^:]+:iam::aws:policy/(.*/)?(AdministratorAccess.*|\w*PowerUser\w*|\w*FullAccess.*|\w*ReadWrite\w*"
    r"|SystemAdministrator|DatabaseAdministrator|NetworkAdministrator|DataScientist"
    r"|AmazonElasticMapReduceRole|AmazonElasticMapReduceforEC2Role)"
)
_ARN_PARTS = 6
_ONE_ROLE = re.compile(r"arn:[^:*?]+:iam::\d{12}:role/[^*?$]+")
# Services whose ARNs begin with a name of their users; those of others begin with the kind of the resource.
_WITHOUT_KINDS = frozenset({"codecommit", "execute-api", "s3", "sns", "sqs"})
# Parts beside the kind that are no name: app in loadbalancer/app/, regional in regional/webacl/, and the UUID in
# autoScalingGroup:<UUID>:autoScalingGroupName/.
_WITH_FORMS = frozenset({"autoscaling", "elasticloadbalancing", "wafv2"})
_FORM = re.compile(
    r"(loadbalancer|listener|listener-rule)/(?:app|net|gwy)(?:/|(?=[*?]))"
    r"|(?:regional|global)/(\w+)(?:/|(?=[*?]))"
    r"|(\w+):[^:]*:(?:autoScalingGroupName|launchConfigurationName)/"
)
# Kinds of EC2 of which people choose the names. Other names are IDs of random digits, of which a part is any one's.
_NAMED_IN_EC2 = frozenset({"key-pair", "placement-group"})
# Kinds of other services whose names are such IDs.
_IDENTIFIED = frozenset(
    {
        ("cloudfront", "distribution"),
        ("cognito-idp", "userpool"),
        ("elasticfilesystem", "access-point"),
        ("elasticfilesystem", "file-system"),
        ("fsx", "backup"),
        ("fsx", "file-system"),
        ("fsx", "volume"),
        ("kms", "key"),
        ("route53", "hostedzone"),
        ("servicediscovery", "namespace"),
        ("servicediscovery", "service"),
        ("transfer", "server"),
        ("vpc-lattice", "service"),
        ("vpc-lattice", "servicenetwork"),
    }
)
# An account that is left open, and conditions that name it.
_ANY_ACCOUNT = re.compile(r"arn:[^:]*:iam:[^:]*:[^:]*[*?]")
_ACCOUNTS = frozenset({"aws:resourceaccount", "aws:resourceorgid"})
# What may be asked for with the tags of what is yet to be made; other actions are on what others may have made.
_MAKES = re.compile(r"[^:]+:(create|run)(?!tags$)[a-z]*")
# These make a part of what is there already: a cluster, a load balancer, a listener. By the service authorization
# reference, that is the resource that IAM judges, and the tags of the request are those of the part.
_MAKES_A_PART = re.compile(
    r"eks:create(accessentry|addon|capability|fargateprofile|nodegroup|podidentityassociation)"
    r"|elasticloadbalancing:create(listener|rule)"
)


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
    kinds: set[str] = set()
    accounts = False
    for index in range(len(resources)):
        with judgement.part():
            anything = anything or _is_everything(resources[index])
            kinds |= {kind for kind in [_whole_kind(resources[index])] if kind}
            accounts = accounts or _ANY_ACCOUNT.match(resources[index]) is not None
    if not anything and not kinds and not accounts:
        return
    allowed = [entry["action"].lower() for entry in judgement.settings["allowedActions"]]
    actions, condition = listed(statement.get("Action")), section(statement, "Condition")
    for index in range(len(actions)):
        with judgement.part():
            action = actions[index].lower()
            # Who owns another account chooses the tags of its roles.
            roams = action.startswith("sts:assumerole") and (anything or accounts) and not _in_accounts(condition)
            # Where an action knows no tags of its resource, IAM takes the tag for absent and denies the action.
            tagged = _is_tagged(action, condition) and not roams
            if tagged or any(fnmatchcase(action, pattern) for pattern in allowed):
                continue
            if anything:
                judgement.violation(f"{where} allows {actions[index]} on every resource.")
            elif roams:
                judgement.violation(f"{where} allows {actions[index]} on roles of every account.")
            elif open_kinds := {kind for kind in kinds if not _is_allowed(action, kind, judgement)}:
                judgement.violation(
                    f"{where} allows {actions[index]} on every {', '.join(sorted(open_kinds))}, and has no condition "
                    "on a tag."
                )


def _in_accounts(condition: Properties) -> bool:
    """Return whether a condition names the accounts, or the organization, of the resource."""
    return bool({key.lower() for key in section(condition, "StringEquals")} & _ACCOUNTS)


def _is_allowed(action: str, kind: str, judgement: Judgement) -> bool:
    return any(
        fnmatchcase(action, entry["action"].lower()) and kind in entry.get("kinds", [kind])
        for entry in judgement.settings["allowedOnKinds"]
    )


def _whole_kind(arn: str) -> str | None:
    """Return the kind of which a pattern leaves the name open, such as role, or None."""
    parts = arn.split(":", _ARN_PARTS - 1)
    # Buckets have no account; access points and jobs of S3 have one, and kinds.
    if len(parts) < _ARN_PARTS or (parts[2] in _WITHOUT_KINDS and not (parts[2] == "s3" and parts[4])):
        return None
    resource = parts[-1].lstrip("/")  # of API Gateway: /restapis/a1
    if parts[2] in _WITH_FORMS and (form := _FORM.match(resource)):
        resource = f"{form[form.lastindex or 0]}/{resource[form.end() :]}"
    kind = re.split("[:/]", resource, maxsplit=1)[0]
    name = resource[len(kind) + 1 :].lstrip("/")  # of CloudWatch Logs: log-group:/aws/eks
    if set(kind) & set("*?") or name[:1] in ("*", "?", "$"):
        return kind
    is_id = (parts[2], kind) in _IDENTIFIED or (parts[2] == "ec2" and kind not in _NAMED_IN_EC2)
    return kind if is_id and not EXACT.fullmatch(name.partition("/")[0]) else None


def _is_tagged(action: str, condition: Properties) -> bool:
    """Return whether the resource must carry a tag, or gets one when it is made."""
    keys = {
        key.lower()
        for operator in ("StringEquals", "StringLike", "Null")
        for key in section(condition, operator)
        if operator != "Null" or str(section(condition, operator)[key]).lower() == "false"
    }
    if any(":resourcetag/" in key for key in keys):
        return True
    is_whole = _MAKES.fullmatch(action) is not None and not _MAKES_A_PART.fullmatch(action)
    made = is_whole or any(key.endswith(":createaction") for key in keys)
    return made and any(key.startswith("aws:requesttag/") for key in keys)


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


_ALLOWED_ACTION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"type": "string", "minLength": 1},
        "reason": {"type": "string", "minLength": 1},
    },
    "required": ["action", "reason"],
    "additionalProperties": False,
}

# What Karpenter and the AWS Load Balancer Controller need of resources that others make.
_USED = ["image", "snapshot", "security-group", "subnet", "capacity-reservation", "placement-group"]
_ON_KINDS = [
    {"action": "*:Describe*", "reason": "changes nothing"},
    {"action": "*:List*", "reason": "changes nothing"},
    {"action": "ec2:RunInstances", "reason": "only uses these", "kinds": _USED},
    {"action": "ec2:CreateFleet", "reason": "only uses these", "kinds": _USED},
    {"action": "ec2:CreateSecurityGroup", "reason": "creates one, in a network", "kinds": ["security-group", "vpc"]},
    {"action": "ec2:GetSecurityGroupsForVpc", "reason": "changes nothing"},
    {"action": "ec2:GetCoipPoolUsage", "reason": "changes nothing"},
    {"action": "iam:GetInstanceProfile", "reason": "changes nothing"},
    {"action": "iam:GetServerCertificate", "reason": "a certificate without its key"},
    {"action": "elasticloadbalancing:RegisterTargets", "reason": "only on target groups, as in AWS's own policy"},
    {"action": "elasticloadbalancing:DeregisterTargets", "reason": "only on target groups, as in AWS's own policy"},
    *(
        {"action": action, "reason": "as in AWS's own policy: listeners may have no tags", "kinds": kinds}
        for action, kinds in (
            ("elasticloadbalancing:CreateListener", ["loadbalancer"]),
            *((f"elasticloadbalancing:{verb}", ["listener"]) for verb in ("DeleteListener", "ModifyListener")),
            ("elasticloadbalancing:*ListenerCertificates", ["listener"]),
            ("elasticloadbalancing:CreateRule", ["listener"]),
            *((f"elasticloadbalancing:{verb}", ["listener-rule"]) for verb in ("DeleteRule", "ModifyRule")),
            ("elasticloadbalancing:SetRulePriorities", ["listener-rule"]),
            *((f"elasticloadbalancing:{verb}", ["listener", "listener-rule"]) for verb in ("AddTags", "RemoveTags")),
        )
    ),
    {"action": "wafv2:Get*", "reason": "changes nothing"},
    *(
        {"action": f"wafv2:{verb}", "reason": "as in AWS's own policy", "kinds": ["loadbalancer", "webacl"]}
        for verb in ("AssociateWebACL", "DisassociateWebACL")
    ),
]

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
        # On all resources of a kind, in a statement without a condition on a tag; `kinds` are all where there are none.
        "allowedOnKinds": {
            "type": "array",
            "items": {
                **_ALLOWED_ACTION,
                "properties": {
                    **_ALLOWED_ACTION["properties"],
                    "kinds": {"type": "array", "items": {"type": "string", "minLength": 1}},
                },
            },
            "default": _ON_KINDS,
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
