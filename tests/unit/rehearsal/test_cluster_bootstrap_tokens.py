"""Which answers of the API server keep a kubelet with a bootstrap token out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from karpstack.rehearsal.cluster.bootstrap_tokens import refusal

TOKEN = "abcdef.0123456789abcdef"
USER, GROUPS = "system:bootstrap:abcdef", ["system:bootstrappers", "system:authenticated"]


class ApiServer:
    """Answers reviews."""

    def __init__(self, *, authenticated: bool = True, allowed: tuple[str, ...] = ("", "nodeclient")) -> None:
        self.authenticated = authenticated
        self.allowed = allowed

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        spec = body["spec"]
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            assert spec == {"token": TOKEN}
            user = {"user": {"username": USER, "groups": GROUPS}} if self.authenticated else {}
            return {"status": {"authenticated": self.authenticated, **user}}
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert (spec["user"], spec["groups"]) == (USER, GROUPS)
        attributes = spec["resourceAttributes"]
        assert (attributes["verb"], attributes["resource"]) == ("create", "certificatesigningrequests")
        return {"status": {"allowed": attributes["subresource"] in self.allowed}}


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (ApiServer(authenticated=False), "Unauthorized.*bootstrap-token-abcdef.*has not expired"),
        (ApiServer(allowed=()), 'forbidden: User "system:bootstrap:abcdef" cannot create.*system:bootstrappers'),
        (ApiServer(allowed=("nodeclient",)), "forbidden"),
        (ApiServer(allowed=("",)), "stays Pending.*nodeclient.*system:bootstrappers"),
    ],
)
def test_why_a_kubelet_gets_no_certificate(server: Any, text: str) -> None:
    found = refusal(server, TOKEN)
    assert "0123456789abcdef" not in found
    assert re.search(text, found)


def test_a_kubelet_gets_in() -> None:
    server: Any = ApiServer()
    assert refusal(server, TOKEN) == ""
