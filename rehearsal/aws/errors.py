"""Errors as AWS gives them.

`refusal` is for callers in this process: botocore's own `ClientError`, so that they cannot tell whether moto or this
package refused. `answer` is what code inside moto raises, for moto to write into the response.
"""

from __future__ import annotations

from functools import cache

from botocore.exceptions import ClientError


def refusal(code: str, message: str, operation: str, status: int = 400) -> ClientError:
    """An error answer of an AWS API.

    Args:
        code: AWS's error code, for example `ResourceInUseException`.
        message: AWS's text.
        operation: Name of the API operation.
        status: HTTP status.
    """
    return ClientError(
        {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {
                "RequestId": "",
                "HostId": "",
                "HTTPStatusCode": status,
                "HTTPHeaders": {},
                "RetryAttempts": 0,
            },
        },
        operation,
    )


def answer(code: str, message: str) -> Exception:
    """An exception that moto turns into this error answer, in the protocol of whichever service raises it."""
    return _answer_type()(code, message)


@cache
def _answer_type() -> type[Exception]:
    from moto.core.exceptions import ServiceException

    # A class of this module: moto looks for the error's model in the package that its class comes from.
    return type("AccountError", (ServiceException,), {"__module__": __name__})
