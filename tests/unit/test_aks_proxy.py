"""A proxy and certificates on AKS: what is refused of both settings, what AKS is told, and what an update does."""

from __future__ import annotations

import base64
from typing import Any

import pulumi
import pytest
import yaml

from components import aks as environments
from components import settings
from components.aks.update_guards import refuse_leaving_out, warn_of_new_nodes
from components.documents import aks_proxy
from components.problems import SettingsError
from karpenter.findings import Finding
from tests.conftest import Golden
from tests.unit.example_stack import ROOT, aks, example, raw
from tests.unit.made_certificates import certificate
from tests.unit.mock_engine import SUBSCRIPTION, deploy

NAP, SELF_HOSTED = "aks-nap", "aks-self-hosted"
FILE = ROOT / "examples" / "proxy" / "Pulumi.aks-proxy.yaml"
URL = "http://proxy.corp.example:3128"
PROXY = {"http": URL, "https": URL}
ROOTS = [certificate(f"Root {number}") for number in range(11)]
CLUSTER = "azure-native:containerservice:ManagedCluster"
HUB = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/hub/providers/Microsoft.Network/virtualNetworks/shared/subnets/aks"


def problems(stack: str, **changes: Any) -> tuple[Finding, ...]:
    with pytest.raises(SettingsError) as caught:
        settings.load(example(stack, **changes))
    return caught.value.problems


REFUSED: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "a proxy, self-hosted": (SELF_HOSTED, {"proxy": PROXY}, "proxy", "bootstrap has proxies switched off", "to nap"),
    "certificates, self-hosted": (
        SELF_HOSTED,
        {"trustedCertificates": ROOTS[:1]},
        "trustedCertificates",
        "bootstrap has custom certificate authorities switched off",
        "to nap",
    ),
    "many certificates": (
        NAP,
        {"trustedCertificates": ROOTS},
        "trustedCertificates",
        "are more than 10, which is all that AKS takes",
        "name the roots alone",
    ),
    "http alone": (NAP, {"proxy": {"http": URL}}, "proxy.https", "AKS sends https through it as well", URL),
    "https alone": (NAP, {"proxy": {"https": "https://p:8"}}, "proxy.http", "documents no cluster", "http://p:8"),
    "TLS to the proxy, for http": (
        NAP,
        {"proxy": PROXY | {"http": "https://proxy.corp.example:3129"}},
        "proxy.http",
        "AKS takes for https alone",
        "without TLS",
    ),
    "a port": (
        NAP,
        {"proxy": PROXY | {"noProxy": ["git.corp.example:8080"]}},
        "proxy.noProxy[0]",
        "RFC 1123",
        "without a port",
    ),
    "no host's name": (
        NAP,
        {"proxy": PROXY | {"noProxy": ["one", "my_host.corp.example"]}},
        "proxy.noProxy[1]",
        "RFC 1123",
        "letters, digits, dots and hyphens",
    ),
    "a proxy among pods": (
        NAP,
        {"proxy": PROXY | {"https": "http://10.244.3.4:3128"}},
        "proxy.https",
        "lies in network.podCidr 10.244.0.0/16",
        "another podCidr",
    ),
    "a proxy among Services": (
        NAP,
        {"proxy": PROXY | {"http": "http://10.0.3.4:3128"}},
        "proxy.http",
        "lies in network.serviceCidr 10.0.0.0/16",
        "another serviceCidr",
    ),
    "an expired certificate": (
        NAP,
        {"trustedCertificates": [certificate(until="2025-02-01")]},
        "trustedCertificates[0]",
        "expired on 2025-02-01",
        "that replaces it",
    ),
    "AKS's key of a proxy": (
        NAP,
        {"cluster__httpProxyConfig": {}},
        "cluster.httpProxyConfig",
        "is no key of the cluster here",
        "karpstack:proxy",
    ),
    "AKS's key of certificates": (
        NAP,
        {"cluster__customCaTrustCertificates": []},
        "cluster.customCaTrustCertificates",
        "is no key of the cluster here",
        "karpstack:trustedCertificates",
    ),
    "mirrors for nodes": (
        NAP,
        {"images": {"nodeMirrors": {"docker.io": "mirror.corp.example"}}},
        "images.nodeMirrors",
        "for which AKS has no setting",
        "name your registry",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused(case: str) -> None:
    stack, changes, key, consequence, fix = REFUSED[case]
    (problem,) = problems(stack, **changes)
    assert problem.key == f"karpstack:{key}"
    assert consequence in problem.consequence
    assert fix in problem.fix


def test_what_aks_takes_is_taken() -> None:
    entries = [".corp.example", "git.corp.example", "192.168.0.0/16", "10.9.8.7"]
    aks(NAP, proxy=PROXY | {"https": "https://10.9.9.9:8443", "noProxy": entries}, trustedCertificates=ROOTS[:10])


def test_the_example(golden: Golden) -> None:
    loaded = settings.load(raw(yaml.safe_load(FILE.read_text())["config"]))
    assert isinstance(loaded, settings.AksSettings)
    assert loaded.proxy is not None
    said = aks_proxy.http_proxy_config(
        http=loaded.proxy.http or "",
        https=loaded.proxy.https or "",
        no_proxy=loaded.proxy.no_proxy,
        ranges=[str(loaded.network.vnet_cidr)],
        certificates=loaded.trusted_certificates,
    )
    golden("aks-http-proxy-config", said)


def cluster(**changes: Any) -> dict[str, Any]:
    """What AKS is asked for."""
    (made,) = deploy(lambda: environments.Environment("aks", aks(NAP, **changes))).of(CLUSTER)
    return made.inputs


def test_aks_is_told_of_both() -> None:
    asked = cluster(proxy=PROXY | {"noProxy": [".corp.example"]}, trustedCertificates=ROOTS[:2])
    config = asked["httpProxyConfig"]
    # AKS refuses a URL without a path, and a name that begins with a dot.
    assert (config["httpProxy"], config["httpsProxy"]) == (f"{URL}/", f"{URL}/")
    assert config["noProxy"][0] == "corp.example"
    assert {"svc", "cluster.local", "10.224.0.0/16"} < {*config["noProxy"]}
    assert base64.b64decode(config["trustedCa"]).decode() == "".join(ROOTS[:2])
    trusted = asked["securityProfile"]["customCATrustCertificates"]
    assert [base64.b64decode(one).decode() for one in trusted] == ROOTS[:2]


def test_each_goes_without_the_other() -> None:
    assert "trustedCa" not in cluster(proxy=PROXY)["httpProxyConfig"]
    assert "httpProxyConfig" not in cluster(trustedCertificates=ROOTS[:1])


def test_a_stack_that_says_nothing_of_them_asks_for_nothing_new() -> None:
    asked = cluster()
    assert "httpProxyConfig" not in asked
    assert asked["securityProfile"] == {"workloadIdentity": {"enabled": True}}
    assert cluster(trustedCertificates=[])["securityProfile"]["customCATrustCertificates"] == []


def test_the_range_of_a_network_that_is_there_is_reached_directly() -> None:
    asked = cluster(proxy=PROXY, network__subnetCidr=None, network__vnetCidr="10.99.0.0/16", network__subnetId=HUB)
    assert "10.224.0.0/16" in asked["httpProxyConfig"]["noProxy"]
    assert "10.99.0.0/16" not in asked["httpProxyConfig"]["noProxy"]


def update(old: dict[str, Any], new: dict[str, Any]) -> pulumi.ResourceHookArgs:
    return pulumi.ResourceHookArgs("urn", "id", "cluster", CLUSTER, old_inputs=old, new_inputs=new)


def trusting(*certificates: str) -> dict[str, Any]:
    return {"securityProfile": {"customCATrustCertificates": [*certificates]}}


BEHIND = {"httpProxyConfig": {"httpProxy": f"{URL}/"}}


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (BEHIND, {}, "nothing takes a proxy away"),
        (trusting("a"), {"securityProfile": {}}, "Write `karpstack:trustedCertificates: []`"),
        (trusting("a"), {}, "Write `karpstack:trustedCertificates: []`"),
    ],
)
def test_an_update_that_would_take_nothing_away_is_refused(old: dict[str, Any], new: dict[str, Any], text: str) -> None:
    with pytest.raises(pulumi.RunError, match="stays as it is") as caught:
        refuse_leaving_out(update(old, new))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [({}, BEHIND), (BEHIND, BEHIND), (trusting("a"), trusting()), (trusting(), {}), ({}, trusting("a"))],
)
def test_what_aks_does_is_not_refused(old: dict[str, Any], new: dict[str, Any]) -> None:
    refuse_leaving_out(update(old, new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, BEHIND, "karpstack:proxy will be another"),
        (trusting("a"), trusting("b"), "karpstack:trustedCertificates will be another"),
        (BEHIND | trusting("a"), BEHIND | trusting(), "karpstack:trustedCertificates will be another"),
        ({}, BEHIND | trusting("a"), "karpstack:proxy and karpstack:trustedCertificates will be another"),
        (BEHIND | trusting("a"), BEHIND | trusting("a"), ""),
        ({}, trusting(), ""),
    ],
)
def test_whoever_changes_one_is_told_that_nodes_are_made_anew(
    monkeypatch: pytest.MonkeyPatch, old: dict[str, Any], new: dict[str, Any], said: str
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: warnings.append(text))
    warn_of_new_nodes(update(old, new))
    assert bool(warnings) == bool(said)
    assert all(said in one and "reimages every node" in one for one in warnings)
