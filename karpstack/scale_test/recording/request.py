"""One request to the API server, answered by plain lines instead of the client's models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

import urllib3
from kubernetes import client

from .following import BrokenError, Resource


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
    request = api.param_serialize(
        "GET",
        resource.path,
        query_params=[*resource.selectors, *query.items()],
        header_params={"Accept": "application/json"},
        auth_settings=["BearerToken"],
    )
    try:
        answer: urllib3.HTTPResponse = api.call_api(*request, _request_timeout=timeouts).response
        try:
            if answer.status != HTTPStatus.OK:
                raise BrokenError(answer.read(1000).decode(errors="replace"), answer.status)
            yield iter(answer)
        finally:
            answer.close()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise BrokenError(str(error)) from error
