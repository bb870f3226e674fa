"""One request to the API server, answered by plain lines instead of the client's models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from operator import attrgetter
from typing import Final

import urllib3
from kubernetes import client

from karpstack.text import answers
from karpstack.text.kubeconfig import prepare

from .following import BrokenError, Resource

_CHUNK: Final = 2**16
_VERSION: Final = "/version"
_VERSION_SECONDS: Final = 20.0
#: Bytes of one line of an answer; a page of 500 large pods has a tenth of that.
LONGEST: Final = 64 * 2**20


def lines(answer: urllib3.HTTPResponse) -> Iterator[bytes]:
    """Yield the lines of an answer, as they come.

    Raises:
        BrokenError: A line is longer than any that an API server sends.
    """
    held: list[bytes] = []
    size = 0
    while chunk := answer.read1(_CHUNK, decode_content=True):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield b"".join([*held, part, b"\n"])
            held, size = [], 0
        held.append(rest)
        size += len(rest)
        if size > LONGEST:
            raise BrokenError(f"a line of the answer has more than {LONGEST // 2**20} MiB")
    if size:
        yield b"".join(held)


def version(api: client.ApiClient) -> str:
    """Return an API server's version, `v1.36.3`.

    Raises:
        BrokenError: There is no answer in `_VERSION_SECONDS`, or one that refuses, or it is no API server.
    """
    try:
        send = prepare(api, "GET", _VERSION, _VERSION_SECONDS)
        answer, content = answers.read(send, attrgetter("response"), _VERSION_SECONDS)
        if answer.status != HTTPStatus.OK:
            raise BrokenError(f"GET {_VERSION}: {answer.status} {answers.begins(content)}", answer.status)
        found = answers.parse(content).get("gitVersion")
    except (urllib3.exceptions.HTTPError, OSError, answers.AnswerError) as error:
        raise BrokenError(f"GET {_VERSION}: {error}") from error
    if not isinstance(found, str):
        raise BrokenError(f"GET {_VERSION}: the answer has no gitVersion; a proxy or a login page may be between")
    return found


@contextmanager
def ask(
    api: client.ApiClient, resource: Resource, query: Mapping[str, str], timeouts: tuple[float, float]
) -> Iterator[Iterator[bytes]]:
    """The lines of the answer, as they come.

    Args:
        api: A connected client.
        resource: What is asked for.
        query: Parameters, beside the resource's selectors.
        timeouts: Seconds to connect, and between two parts of the answer.

    Raises:
        BrokenError: There is no answer, or one that refuses; also while the lines come.
    """
    try:
        send = prepare(api, "GET", resource.path, timeouts, query=[*resource.selectors, *query.items()])
        answer: urllib3.HTTPResponse = send().response
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:  # a redirect to no address, for example
        raise BrokenError(str(error)) from error
    try:
        if answer.status != HTTPStatus.OK:
            raise BrokenError(answer.read(1000).decode(errors="replace"), answer.status)
        yield lines(answer)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise BrokenError(str(error)) from error
    finally:
        answer.close()
