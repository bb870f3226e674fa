"""Errors as AWS gives them.

`refused` and `answer` are what code inside moto raises, for moto to write into the response. `on_the_wire` is the
response itself, where moto cannot write it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import yaml

from karpstack.text.shown import visible

_REFUSALS: Final = yaml.load(Path(__file__).with_name("refusals.yaml").read_bytes(), yaml.CSafeLoader)
_ERROR = "<Error><Code>{code}</Code><Message>{text}</Message></Error>"
#: AWS's sentence on an action that a service has not.
NO_ACTION = "The action {action!r} is not valid for {service}"
_QUERY = f"<ErrorResponse>{_ERROR}<RequestId>0</RequestId></ErrorResponse>"
#: Services that answer in XML, with the form of their errors.
_XML = {
    "ec2": f"<Response><Errors>{_ERROR}</Errors><RequestID>0</RequestID></Response>",
    "elasticloadbalancing": _QUERY,
    "iam": _QUERY,
    "sqs": _QUERY,
    "sts": _QUERY,
}


def answer(code: str, message: str) -> Exception:
    """An exception that moto turns into this error answer, in the protocol of whichever service raises it."""
    return _answer_type()(code, message)


def refused(name: str, /, **words: object) -> Exception:
    """The error answer of a name in refusals.yaml, with words in its text."""
    code, text = _REFUSALS[name]
    return answer(code, text.format(**words))


def on_the_wire(service: str, is_json: bool, code: str, message: str) -> tuple[str, bytes]:
    """An error answer as the clients of a service read it: content type and body.

    Args:
        service: The service's name in signatures, `ec2`.
        is_json: Whether the request was JSON; SQS and others answer in the protocol that they are asked in.
        code: AWS's error code.
        message: Text; XML has no control characters, so they are shown escaped.
    """
    if is_json or service not in _XML:
        return "application/x-amz-json-1.1", json.dumps({"__type": code, "message": message}).encode()
    text = escape(visible(message))
    return "text/xml", _XML[service].format(code=escape(code), text=text).encode()


@cache
def _answer_type() -> type[Exception]:
    from moto.core.exceptions import ServiceException

    # A class of this module: moto looks for the error's model in the package that its class comes from.
    return type("AccountError", (ServiceException,), {"__module__": __name__})
