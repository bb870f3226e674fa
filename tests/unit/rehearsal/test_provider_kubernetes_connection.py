"""Which cluster the kubernetes provider reaches, and what it says of a kubeconfig that reaches none."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal.attachment.resource import UNKNOWN, Properties, RefusedError
from karpstack.rehearsal.cluster import provider as kubernetes
from karpstack.rehearsal.cluster.provider.connection import Connection, UnreachableError
from tests.unit.rehearsal.provider_kubernetes_world import ENDPOINT, FakeCharts, FakeCluster, FakeClusters, certificate


def kubeconfig(
    *,
    server: str = ENDPOINT,
    authority: str = certificate(b"ours"),
    cluster: Mapping[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
    **plugin: Any,
) -> str:
    execution = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", "karpstack"],
        **plugin,
    }
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u"}},
                {"name": "broken", "context": {"cluster": "nowhere", "user": "u"}},
                {"name": "spaced", "context": {"cluster": "c", "user": "u", "namespace": "apps"}},
            ],
            "clusters": [
                {
                    "name": "c",
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
                        **(cluster or {}),
                    },
                }
            ],
            "users": [{"name": "u", "user": {"exec": execution} if user is None else user}],
        }
    )


def connection(text: str | None = None, **settings: Any) -> Connection:
    return Connection(
        {"kubeconfig": kubeconfig() if text is None else text, **settings},
        FakeClusters(FakeCluster()),  # type: ignore[arg-type]
        threading.Event(),
    )


# -- the connection


def test_a_good_kubeconfig_reaches_its_cluster() -> None:
    assert connection().cluster().name == "karpstack"
    assert connection(json.dumps(yaml.safe_load(kubeconfig()))).cluster().name == "karpstack"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "platform", "--role-arn", "arn:a"], ""),
        ([], "with --profile platform, and the exec plugin asks for a token with no --profile"),
        (["--profile", "platform"], "with no --role-arn"),
        (["--profile", "platform", "--role-arn=arn:b"], "with --role-arn arn:b"),
    ],
)
def test_a_cluster_knows_who_made_it_and_nobody_else(options: list[str], said: str) -> None:
    made = FakeClusters(FakeCluster({"--profile": "platform", "--role-arn": "arn:a"}))
    text = kubeconfig(args=["eks", "get-token", "--cluster-name", "karpstack", *options])
    found = Connection({"kubeconfig": text}, made, threading.Event())  # type: ignore[arg-type]  # a fake
    if said:
        with pytest.raises(UnreachableError, match=f"asked for the client to provide credentials .*{said}"):
            found.cluster()
    else:
        assert found.cluster().name == "karpstack"


def test_no_kubeconfig_is_refused_before_anything_else() -> None:
    with pytest.raises(RefusedError, match="whichever cluster"):
        connection("")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (kubeconfig(server="https://127.0.0.1:1"), r"dial tcp 127\.0\.0\.1:1: connect: connection refused"),
        (kubeconfig(authority=certificate(b"theirs")), "x509: certificate signed by unknown authority"),
        (kubeconfig(authority="no certificate"), "x509: certificate signed by unknown authority"),
        (kubeconfig(args=["eks", "get-token", "--cluster-name", "other"]), "token is for the cluster 'other'"),
        (kubeconfig(args=["eks", "get-token", "--cluster-name=other"]), "token is for the cluster 'other'"),
        (
            kubeconfig(args=["token", "-i", "other"], command="aws-iam-authenticator"),
            "token is for the cluster 'other'",
        ),
        (kubeconfig(args=["eks", "get-token"]), "token is for the cluster ''"),
        (kubeconfig(apiVersion="client.authentication.k8s.io/v1alpha1"), "exec plugin: invalid apiVersion"),
        (kubeconfig(apiVersion="client.authentication.k8s.io/v1"), "interactiveMode must be specified"),
        (kubeconfig(args=["token"], command="aws-iam-authenticator"), "token is for the cluster ''"),
        (kubeconfig(args=["token"]), "token is for the cluster ''"),
        (kubeconfig(command="echo", args=["{}"]), "stands in for aws, aws-iam-authenticator, kubelogin only, not for"),
        (kubeconfig(user={}), r"asked for the client to provide credentials \(the kubeconfig's user has none\)"),
        (kubeconfig(user={"token": "made up"}), "provide credentials .* not the one of this cluster's administrator"),
        (kubeconfig(user={"token": "Ä"}), "not the one of this cluster's administrator"),
        (kubeconfig(user={"tokenFile": "/no/such/file"}), "tokenFile cannot be read"),
        (kubeconfig(user={"client-certificate-data": "x"}), "has a client certificate, and this cluster trusts none"),
        ("a: [", "failed to parse kubeconfig data"),
        ("- a\n- b\n", "it is a list, not a map"),
        ("/no/such/file", "failed to parse kubeconfig data"),
        ("kind: Config\n", "names no context"),
    ],
)
def test_a_bad_kubeconfig_gives_the_users_error(text: str, reason: str) -> None:
    with pytest.raises(UnreachableError, match=reason):
        connection(text).cluster()


def test_tls_verification_can_be_switched_off() -> None:
    text = kubeconfig(authority=certificate(b"theirs"), cluster={"insecure-skip-tls-verify": True})
    assert connection(text).cluster().name == "karpstack"


def test_the_administrators_token_opens_the_cluster(tmp_path: Path) -> None:
    assert connection(kubeconfig(user={"token": FakeCluster.token})).cluster()
    (tmp_path / "token").write_text(f"{FakeCluster.token}\n")
    assert connection(kubeconfig(user={"tokenFile": str(tmp_path / "token")})).cluster()


@pytest.mark.parametrize("user", [{}, {"user": {"token": FakeCluster.token}}])
def test_nothing_opens_the_cluster_before_it_knows_who_made_it(
    monkeypatch: pytest.MonkeyPatch, user: dict[str, Any]
) -> None:
    monkeypatch.setattr(FakeCluster, "knows_deployer", False)
    with pytest.raises(UnreachableError, match="does not know yet who made it"):
        connection(kubeconfig(**user)).cluster()


def test_a_bundle_may_hold_more_certificates() -> None:
    assert connection(kubeconfig(authority=certificate(b"theirs") + certificate(b"ours"))).cluster()


def test_an_azure_token_names_no_cluster() -> None:
    assert connection(kubeconfig(command="kubelogin", args=["get-token", "--server-id", "x"])).cluster()


def test_the_context_may_be_chosen() -> None:
    with pytest.raises(UnreachableError, match="cluster 'nowhere' does not exist"):
        connection(context="broken").cluster()
    assert connection(context="spaced").namespace == "apps"
    assert connection(context="spaced", namespace="other").namespace == "other"
    assert connection().namespace == "default"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig()}, []),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig(args=["other"])}, []),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": kubeconfig(server="https://127.0.0.1:1")}, ["kubeconfig"]),
        ({"kubeconfig": kubeconfig()}, {"kubeconfig": UNKNOWN}, ["kubeconfig"]),
        (
            {"kubeconfig": kubeconfig(), "clusterIdentifier": "a"},
            {"kubeconfig": kubeconfig(server="https://127.0.0.1:1"), "clusterIdentifier": "a"},
            [],
        ),
        (
            {"kubeconfig": kubeconfig(), "clusterIdentifier": "a"},
            {"kubeconfig": kubeconfig(), "clusterIdentifier": "b"},
            ["clusterIdentifier"],
        ),
    ],
)
def test_another_cluster_replaces_the_provider(old: Properties, new: Properties, expected: list[str]) -> None:
    assert kubernetes.replaces(old, new) == expected


def test_only_server_side_apply_is_known() -> None:
    configuration = kubernetes.configuration(FakeClusters(), None)  # type: ignore[arg-type]  # not reached
    with pytest.raises(RefusedError, match="server-side apply only"):
        configuration.configure({"kubeconfig": kubeconfig(), "enableServerSideApply": "false"}, threading.Event())


def test_a_type_that_cannot_be_rehearsed_is_refused_with_what_can() -> None:
    configuration = kubernetes.configuration(FakeClusters(), FakeCharts())  # type: ignore[arg-type]  # fakes
    provider = configuration.configure({"kubeconfig": kubeconfig()}, threading.Event())
    assert provider.resource("kubernetes:helm.sh/v3:Release").token == "kubernetes:helm.sh/v3:Release"
    assert provider.resource("kubernetes:core/v1:Pod").token == "kubernetes:core/v1:Pod"
    with pytest.raises(RefusedError, match=r"helm\.sh/v4:Chart.*knows kubernetes:helm\.sh/v3:Release and single"):
        provider.resource("kubernetes:helm.sh/v4:Chart")
