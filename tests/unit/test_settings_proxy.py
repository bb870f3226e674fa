"""karpstack:proxy, karpstack:trustedCertificates and karpstack:images.nodeMirrors: what is taken, and each refusal."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from components import settings
from components.documents import proxy
from components.problems import SettingsError, shown
from tests.unit.example_stack import eks, example
from tests.unit.made_certificates import certificate, private_key

TODAY = date(2026, 11, 23)
URL = "http://proxy.corp.example:3128"
ROOT = certificate()


def test_what_people_write_is_taken() -> None:
    said = eks(
        proxy={"http": URL, "https": "https://10.1.2.3:8443", "noProxy": [".corp.example", "10.20.0.0/16", "git:8080"]},
        trustedCertificates=[ROOT, f"subject=CN = Another\n{certificate('Another')}"],
        images={
            "nodeMirrors": {"docker.io": "mirror.corp.example/hub", "registry.corp:5000": "mirror.corp.example:80"}
        },
    )
    assert said.proxy is not None
    assert said.proxy.https == "https://10.1.2.3:8443"
    assert said.trusted_certificates[0] == ROOT
    assert said.trusted_certificates[1].startswith("-----BEGIN CERTIFICATE-----")
    assert eks().proxy is None


@pytest.mark.parametrize(
    ("changes", "key", "said"),
    [
        ({"proxy": {"https": "proxy.corp.example:3128"}}, "proxy.https", "is no address of a proxy"),
        ({"proxy": {"https": "socks5://proxy.corp.example:1080"}}, "proxy.https", "is no address of a proxy"),
        ({"proxy": {"https": "http://me:hunter2@proxy:3128"}}, "proxy.https", "holds credentials"),
        ({"proxy": {"https": "http://proxy.corp.example"}}, "proxy.https", "names no port"),
        ({"proxy": {"https": "http://proxy:a"}}, "proxy.https", "names no port"),
        ({"proxy": {"http": f"{URL}/"}}, "proxy.http", "is more than scheme, host and port"),
        ({"proxy": {"noProxy": [".corp.example"]}}, "proxy", "names no proxy"),
        ({"proxy": {"https": URL, "username": "me"}}, "proxy.username", "asks for credentials"),
        ({"proxy": {"https": URL, "noProxy": ["https://git.corp.example"]}}, "proxy.noProxy[0]", "is a URL or a path"),
        ({"proxy": {"https": URL, "noProxy": ["git.corp.example/x"]}}, "proxy.noProxy[0]", "is a URL or a path"),
        ({"proxy": {"https": URL, "noProxy": ["a", "*.corp.example"]}}, "proxy.noProxy[1]", "has a wildcard"),
        ({"proxy": {"https": URL, "noProxy": [".a,.b"]}}, "proxy.noProxy[0]", "is not one entry"),
        ({"proxy": {"https": URL, "noProxy": [""]}}, "proxy.noProxy[0]", "is not one entry"),
        ({"trustedCertificates": ["certs/root.pem"]}, "trustedCertificates[0]", "is no certificate in PEM"),
        ({"trustedCertificates": [private_key()]}, "trustedCertificates[0]", "holds a private key"),
        ({"trustedCertificates": [ROOT + private_key()]}, "trustedCertificates[0]", "holds a private key"),
        ({"trustedCertificates": [ROOT + certificate()]}, "trustedCertificates[0]", "holds several certificates"),
        ({"trustedCertificates": [ROOT[:-60]]}, "trustedCertificates[0]", "is not the whole of a certificate"),
        ({"trustedCertificates": [ROOT, f"\n{ROOT}"]}, "trustedCertificates", "holds a certificate twice"),
        (
            {"trustedCertificates": [ROOT, certificate("git.corp.example", authority=False)]},
            "trustedCertificates[1]",
            "is the certificate of a server",
        ),
        (
            {"trustedCertificates": [certificate(until="2026-11-22")]},
            "trustedCertificates[0]",
            "expired on 2026-11-22",
        ),
        (
            {"trustedCertificates": [certificate(since="2026-11-24")]},
            "trustedCertificates[0]",
            "is not valid before 2026-11-24",
        ),
        (
            {"images": {"nodeMirrors": {"https://docker.io": "a.b"}}},
            'images.nodeMirrors["https://docker.io"]',
            "is not",
        ),
        (
            {"images": {"nodeMirrors": {"docker.io/library": "a.b"}}},
            'images.nodeMirrors["docker.io/library"]',
            "is not",
        ),
        (
            {"images": {"nodeMirrors": {"index.docker.io": "a.b"}}},
            'images.nodeMirrors["index.docker.io"]',
            "is Docker Hub by another name",
        ),
        (
            {"images": {"nodeMirrors": {"docker.io": "https://a.b"}}},
            'images.nodeMirrors["docker.io"]',
            "is nothing that",
        ),
        (
            {"images": {"nodeMirrors": {"docker.io": "123456789012.dkr.ecr.us-east-1.amazonaws.com/hub"}}},
            'images.nodeMirrors["docker.io"]',
            "is a registry of ECR",
        ),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load(example(**changes), today=TODAY)
    (problem,) = refused.value.problems
    assert problem.key == f"karpstack:{key}"
    assert said in problem.consequence
    assert problem.fix
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("changes", [{"trustedCertificates": ROOT}, {"proxy": {"https": URL, "noProxy": ".a.b,.c.d"}}])
def test_a_text_in_place_of_a_list_is_told_what_to_write(changes: dict[str, Any]) -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load(example(**changes), today=TODAY)
    (problem,) = refused.value.problems
    assert problem.fix.startswith("write a list, of one entry too; give ")


def test_no_message_shows_a_private_key_or_a_password() -> None:
    assert shown(private_key()) == "(secret)"
    assert shown(["https://me:hunter2@proxy:1"]) == '["https://(secret)@proxy:1"]'


def test_what_is_reached_directly() -> None:
    entries = proxy.direct([".corp.example", "localhost"], "10.0.0.0/16")
    assert entries == [
        ".corp.example",
        "localhost",
        "127.0.0.1",
        "169.254.169.254",
        ".svc",
        ".cluster.local",
        "10.0.0.0/16",
    ]
    assert proxy.variables(http=None, https=URL, no_proxy=["a", "b"]) == {"HTTPS_PROXY": URL, "NO_PROXY": "a,b"}
