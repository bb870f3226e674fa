"""The simulated AKS: what it refuses of a proxy and of certificates, and what it adds to `noProxy`."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from rehearsal.azure.arm.errors import ArmError
from rehearsal.azure.clusters import http_proxy
from rehearsal.azure.identity import roles
from tests.unit.made_certificates import certificate
from tests.unit.rehearsal.azure_world import AKS, CLUSTER, World

URL = "http://proxy.corp.example:3128/"
PROXY: dict[str, Any] = {"httpProxy": URL, "httpsProxy": URL}
CERTIFICATES = "securityProfile__customCATrustCertificates"


def trusting(*certificates: str) -> dict[str, Any]:
    return {CERTIFICATES: [*certificates]}


def encoded(*pem: str) -> str:
    return base64.b64encode("".join(pem).encode()).decode()


ROOT = certificate()
ROOTS = [encoded(certificate(f"Root {number}")) for number in range(11)]


@pytest.mark.parametrize("mode", ["Auto", "Manual"])
def test_what_is_not_sent_through_a_proxy_is_added(mode: str) -> None:
    world = World()
    given = PROXY | {"noProxy": ["corp.example", "localhost", "192.168.0.0/16"], "trustedCa": encoded(ROOT)}
    body = world.cluster_body(httpProxyConfig=given, nodeProvisioningProfile={"mode": mode}, **trusting(*ROOTS[:2]))
    made = world.cluster(body)["properties"]
    expected = ["corp.example", "localhost", "192.168.0.0/16", "konnectivity", made["fqdn"], "10.224.0.0/12"]
    expected += ["127.0.0.1", "169.254.169.254", "10.244.0.0/16", "10.0.0.0/16", "168.63.129.16"]
    assert made["httpProxyConfig"] == given | {"noProxy": expected}
    assert made["securityProfile"]["customCATrustCertificates"] == ROOTS[:2]
    # The same request again changes nothing, and so does one with what was answered.
    assert world.cluster(body)["properties"]["httpProxyConfig"] == made["httpProxyConfig"]
    body["properties"]["httpProxyConfig"] = made["httpProxyConfig"]
    assert world.cluster(body)["properties"]["httpProxyConfig"] == made["httpProxyConfig"]


def test_the_range_of_a_subnet_of_ones_own_is_added() -> None:
    world = World()
    identity, subnet = world.identity(), world.subnet()
    world.grant(subnet, identity["properties"]["principalId"], roles.NETWORK_CONTRIBUTOR)
    made = world.cluster(world.cluster_body(identity, subnet, httpProxyConfig=PROXY))["properties"]
    assert "10.1.0.0/24" in made["httpProxyConfig"]["noProxy"]
    assert "10.224.0.0/12" not in made["httpProxyConfig"]["noProxy"]


def test_an_update_may_change_both_and_leave_neither_out() -> None:
    world = World()
    world.cluster(world.cluster_body())
    body = world.cluster_body(httpProxyConfig=PROXY, **trusting(*ROOTS[:1]))
    world.cluster(body)
    other = PROXY | {"httpsProxy": "https://other:8443/", "noProxy": ["corp.example"]}
    changed = world.cluster(world.cluster_body(httpProxyConfig=other, **trusting()))["properties"]
    assert changed["httpProxyConfig"]["httpsProxy"] == "https://other:8443/"
    assert changed["httpProxyConfig"]["noProxy"][0] == "corp.example"
    assert changed["securityProfile"]["customCATrustCertificates"] == []
    with pytest.raises(ArmError, match="has an HTTPProxyConfig, the request has none"):
        world.cluster(world.cluster_body(**trusting()))
    world.cluster(body)
    with pytest.raises(ArmError, match="and the request has none"):
        world.cluster(world.cluster_body(httpProxyConfig=PROXY))
    assert world.arm.get(CLUSTER, AKS)["properties"]["securityProfile"]["customCATrustCertificates"] == ROOTS[:1]


def test_what_was_answered_is_asked_for_again() -> None:
    answer = {
        "enabled": True,
        "httpProxy": "http://p:1",
        "httpsProxy": URL,
        "noProxy": ["a"],
        "effectiveNoProxy": ["a"],
    }
    assert http_proxy.asked_for(answer) == {"httpProxy": "http://p:1/", "httpsProxy": URL, "noProxy": ["a"]}
    assert http_proxy.asked_for(answer | {"enabled": False}) == {}
