"""IAM roles as the rest of the simulated account asks about them, the administrator, and who may call what.

Requests with unknown credentials are refused, and so are those of a role whose policies do not allow all that IAM is
asked about them (see `questions`); an action that is unknown there must be allowed on something. What roles asked is
recorded.

Changes in moto: service-linked roles get AWS's names (moto calls that of EC2 Spot `AWSServiceRoleForspot`) and
AWS's error when one exists already; AWS's managed policies exist; ListInstanceProfiles keeps to its path (moto lists
all, and Karpenter would take away the roles of profiles that are not its own).
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Callable, Iterable
from copy import copy
from functools import cache
from typing import Any

from karpstack.rehearsal.aws import errors
from karpstack.rehearsal.aws.errors import answer
from karpstack.rehearsal.aws.iam import policies, questions
from karpstack.rehearsal.aws.patching import Patches
from karpstack.rehearsal.recorded_rights import UNKNOWN, Question, Recorder

ADMINISTRATOR = "administrator"
ADMINISTRATOR_POLICY = "AdministratorAccess"
SPOT_ROLE = "AWSServiceRoleForEC2Spot"

# Of AWS's access keys.
_KEY_LETTERS = string.ascii_uppercase + "234567"
_QUERY_SERVICES = frozenset({"elasticloadbalancing", "iam", "sts", "sqs"})
#: Of actions, where they differ from the service's name.
_PREFIXES = {"elb": "elasticloadbalancing", "elbv2": "elasticloadbalancing", "service-quotas": "servicequotas"}
_SPOT = "spot.amazonaws.com"
_SERVICE_LINKED_NAMES = {"spot": "EC2Spot", "eks": "AmazonEKS", "eks-nodegroup": "AmazonEKSNodegroup"}
INVALID_TOKEN = "The security token included in the request is invalid."
_DENIED = (
    "User: {caller} is not authorized to perform: {action}{resource} because no identity-based policy allows the "
    "{action} action"
)
_DENIED_EC2 = "You are not authorized to perform this operation. " + _DENIED


class Roles:
    """The roles of the account.

    Attributes:
        access_key_id: The administrator's, another one for each account: moto checks no signature, so whoever knows
            the id is who it names. It opens nothing anywhere else.
        secret_access_key: The administrator's.
        uses: What roles asked.
    """

    def __init__(self, account_id: str) -> None:
        self._account_id = account_id
        self.uses = Recorder("aws")
        self.access_key_id = "AKIA" + "".join(secrets.choice(_KEY_LETTERS) for _ in range(16))
        self.secret_access_key = secrets.token_urlsafe(30)

    @property
    def _iam(self) -> Any:
        from moto.iam.models import iam_backends

        return iam_backends[self._account_id]["aws"]

    def by_arn(self, arn: str) -> Any | None:
        """moto's role behind an ARN, or None."""
        return next((role for role in list(self._iam.get_roles()) if role.arn == arn), None)

    def by_name(self, name: str) -> Any | None:
        """moto's role of that name, or None."""
        return next((role for role in list(self._iam.get_roles()) if role.name == name), None)

    def profile(self, name: str = "", arn: str = "") -> Any | None:
        """moto's instance profile, or None."""
        return next(
            (
                profile
                for profile in list(self._iam.get_instance_profiles())
                if (name and profile.name == name) or (arn and profile.arn == arn)
            ),
            None,
        )

    def provider_for(self, issuer: str) -> Any | None:
        """moto's OIDC provider for an issuer URL, or None."""
        wanted = issuer.removeprefix("https://")
        return next(
            (
                provider
                for arn, provider in self._iam.open_id_providers.items()
                if arn.split(":oidc-provider/", 1)[-1] == wanted
            ),
            None,
        )

    def allows(self, role: Any, action: str) -> bool:
        """Whether a role's policies allow an action (`ec2:DescribeInstances`) on something."""
        return policies.allows_action(self.documents(role), action)

    def documents(self, principal: Any) -> list[Any]:
        """The policies of a role or user (moto's object), inline ones first."""
        return list(self._named_documents(principal).values())

    def _named_documents(self, principal: Any) -> dict[str, Any]:
        found = dict(principal.policies)
        for policy in principal.managed_policies.values():
            found[policy.name] = next(version.document for version in policy.versions if version.is_default)
        return found

    def principal(self, arn: str) -> Any | None:
        """moto's role or user behind an ARN, or None."""
        users = (user for user in list(self._iam.users.values()) if user.arn == arn)
        return self.by_arn(arn) or next(users, None)

    def may_make_spot_role(self, access_key_id: str) -> bool:
        """Whether whoever has an access key may have EC2 make its service-linked role for spot instances."""
        return self.denial(access_key_id, questions.make_spot_role(self._account_id)) is None

    def denial(self, access_key_id: str, question: Question) -> tuple[str, str] | None:
        """Why whoever has an access key may not do something: AWS's error code and text; None when they may."""
        if access_key_id == self.access_key_id:
            return None
        caller = self.caller(access_key_id)
        role = caller and self.by_arn(caller.role_arn)
        if caller is None or role is None:
            return "UnrecognizedClientException", INVALID_TOKEN
        refused = self._refused(role, [question])
        return None if refused is None else ("AccessDeniedException", _denied(_DENIED, caller, refused))

    def _refused(self, role: Any, asked: Iterable[Question]) -> Question | None:
        """The first of some questions to which a role's policies do not say yes; all of them are recorded."""
        named = self._named_documents(role)
        parsed = {name: json.loads(one) if isinstance(one, str) else one for name, one in named.items()}
        first = None
        for question in asked:
            said = policies.decision(parsed.values(), question.action, question.resource, question.context)
            self.uses.heard(role.name, question, parsed, allowed=said == "allowed")
            if said != "allowed":
                first = first or question
        return first

    def make_spot_role(self) -> None:
        """Make EC2's service-linked role for spot instances, as EC2 does."""
        self._iam.create_service_linked_role(_SPOT, "Default EC2 Spot Service Linked Role", "")

    def seed(self) -> None:
        """Put AWS's managed policies and the administrator into moto.

        moto's own setting would load the policies five times over, once for each of AWS's partitions.
        """
        # Copies: an account counts how often it has attached them.
        known = [copy(policy) for policy in _managed_policies(self._account_id)]
        self._iam.aws_managed_policies = known
        self._iam.managed_policies.update({policy.arn: policy for policy in known})
        self._iam.create_user("us-east-1", ADMINISTRATOR)
        self._iam.attach_user_policy(f"arn:aws:iam::aws:policy/{ADMINISTRATOR_POLICY}", ADMINISTRATOR)
        key = self._iam.create_access_key(ADMINISTRATOR)
        self._iam.access_keys.pop(key.access_key_id, None)
        key.access_key_id, key.secret_access_key = self.access_key_id, self.secret_access_key
        self._iam.access_keys[key.access_key_id] = key

    @property
    def administrator_arn(self) -> str:
        """ARN of the administrator."""
        return f"arn:aws:iam::{self._account_id}:user/{ADMINISTRATOR}"

    def assume(self, role: Any, session: str, region: str, seconds: int = 21600) -> Any:
        """Issue temporary credentials of a role; moto's AssumedRole (access_key_id, secret_access_key, ...)."""
        from moto.sts.models import sts_backends

        return sts_backends[self._account_id]["aws"].assume_role(
            region_name=region,
            role_session_name=session,
            role_arn=role.arn,
            policy="",
            duration=seconds,
            external_id="",
        )

    def caller(self, access_key_id: str) -> Any | None:
        """The role behind temporary credentials: moto's AssumedRole, or None when they are unknown."""
        from moto.sts.models import sts_backends

        return next(
            (
                assumed
                for assumed in reversed(sts_backends[self._account_id]["aws"].assumed_roles)
                if assumed.access_key_id == access_key_id
            ),
            None,
        )

    def patch(self, patches: Patches) -> None:
        """Name service-linked roles as AWS does, and list instance profiles by their path."""
        from moto.iam import models
        from moto.iam.responses import IamResponse

        names = {**models.SERVICE_NAME_CONVERSION, **_SERVICE_LINKED_NAMES}
        patches.set(models, "SERVICE_NAME_CONVERSION", names)
        patches.wrap(models.IAMBackend, "create_service_linked_role", _create_service_linked_role)
        patches.set(IamResponse, "list_instance_profiles", _list_instance_profiles)

    def refuse(self, response: Any) -> Exception | None:
        """Why the caller of a request (moto's response object) may not make it; None when they may."""
        key = response.get_access_key()
        action = response._get_action() or ""
        unsigned = "Authorization" not in response.headers
        if key == self.access_key_id or (unsigned and action == "AssumeRoleWithWebIdentity"):
            return None
        service = _PREFIXES.get(response.service_name, response.service_name)
        caller = self.caller(key)
        role = caller and self.by_arn(caller.role_arn)
        if caller is None or role is None:
            if service == "ec2":
                return errors.refused("invalid token ec2")
            return answer(
                "InvalidClientTokenId" if service in _QUERY_SERVICES else "UnrecognizedClientException", INVALID_TOKEN
            )
        named = f"{service}:{action}"
        if action == "GetCallerIdentity":
            return None
        asked = questions.questions_of_request(response)
        if asked is None:
            allowed = self.allows(role, named)
            refused = None if allowed else Question(named, "")
            self.uses.heard(role.name, Question(named, UNKNOWN), {}, allowed=allowed)
        else:
            refused = self._refused(role, asked)
        if refused is None:
            return None
        code, text = ("UnauthorizedOperation", _DENIED_EC2) if service == "ec2" else ("AccessDeniedException", _DENIED)
        return answer(code, _denied(text, caller, refused))


@cache
def _managed_policies(account_id: str) -> list[Any]:
    """AWS's own policies, as moto has them; there are 1,500 to read."""
    from moto.iam.aws_managed_policies import aws_managed_policies_data
    from moto.iam.models import AWSManagedPolicy

    return [
        AWSManagedPolicy.from_data(name, account_id, "us-east-1", data)
        for name, data in json.loads(aws_managed_policies_data).items()
    ]


def _denied(text: str, caller: Any, refused: Question) -> str:
    where = f" on resource: {refused.resource}" if refused.resource else ""
    return text.format(caller=caller.arn, action=refused.action, resource=where)


def _list_instance_profiles(response: Any) -> Any:
    from moto.core.responses import ActionResult

    prefix = response._get_param("PathPrefix") or "/"
    profiles = response.backend.get_instance_profiles()
    return ActionResult({"InstanceProfiles": [one for one in profiles if one.path.startswith(prefix)]})


def _create_service_linked_role(original: Callable[..., Any]) -> Callable[..., Any]:
    def create(backend: Any, service_name: str, description: str, suffix: str) -> Any:
        from moto.iam.exceptions import EntityAlreadyExists

        try:
            return original(backend, service_name, description, suffix)
        except EntityAlreadyExists as error:
            service = service_name.split(".")[0]
            name = "AWSServiceRoleFor" + _SERVICE_LINKED_NAMES.get(service, service) + (f"_{suffix}" if suffix else "")
            raise errors.refused("name taken", name=name) from error

    return create
