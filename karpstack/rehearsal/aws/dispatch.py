"""How a request enters moto: checked first, then one at a time, and never answered by a traceback.

Changes in moto: a request that its caller may not make is refused (see `roles`); what moto has not implemented is
answered with its name instead of a server error, and so is a request of no action, or whose JSON has not the shape
that the API's model says; the methods of a service are looked up once; and requests take turns, because moto's models
iterate over dictionaries that other threads change. Only ReceiveMessage takes no turn: it waits for messages for up to
20 s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from karpstack.rehearsal.aws import shapes
from karpstack.rehearsal.aws.errors import NO_ACTION, answer, refused
from karpstack.rehearsal.aws.patching import Patches

#: moto warns of error codes that a service's model does not list, as it lists none of these.
_CODES = (
    "AccessDeniedException",
    "InvalidAction",
    "InvalidClientTokenId",
    "NotImplementedException",
    "UnrecognizedClientException",
    "ValidationException",
)


def patch(patches: Patches, refuse: Callable[[Any], Exception | None], turn: threading.RLock) -> None:
    """Install it.

    Args:
        patches: Where to install.
        refuse: Given moto's response object, why its caller may not do this; None when they may.
        turn: Held while a request is answered; whoever else changes moto's models holds it too.
    """
    from moto.core import errors, responses
    from moto.core.responses import ActionResult, BaseResponse

    def call_action(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def checked(response: Any) -> Any:
            problem = refuse(response) or _malformed(response)
            if problem is None:
                try:
                    return original(response)
                except NotImplementedError as error:
                    problem = refused(
                        "not implemented", service=response.service_name, action=response._get_action(), error=error
                    )
            return response.serialized(ActionResult(problem))

        def call(response: Any) -> Any:
            if response._get_action() == "ReceiveMessage":
                return checked(response)
            with turn:
                return checked(response)

        return call

    patches.wrap(BaseResponse, "call_action", call_action)
    # Which methods a class has, moto finds out again for each request.
    patches.wrap(responses, "method_names_from_class", cache)
    patches.set(errors, "COMMON_ERROR_CODES", list(dict.fromkeys([*errors.COMMON_ERROR_CODES, *_CODES])))


def _malformed(response: Any) -> Exception | None:
    """Why a request (moto's response object) cannot be understood, whoever makes it; None when it can."""
    from moto.core.utils import get_service_model

    model = get_service_model(response.boto3_service_name)
    action = response._get_action() or ""
    if action not in model.operation_names:
        return answer("InvalidAction", NO_ACTION.format(action=action[:100], service=response.service_name))
    text = (
        shapes.problem(model.operation_model(action), response.raw_body)
        if "json" in response.determine_response_protocol(model)
        else shapes.query_problem((name, value) for name, (value, *_) in response.querystring.items())
    )
    return answer("ValidationException", text) if text else None
