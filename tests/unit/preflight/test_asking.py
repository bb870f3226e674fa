"""Questions and their answers: what is refused, what fails, what is not there, and what comes in pages."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.parsers import ResponseParserError

from karpstack.components.naming import EksNames
from karpstack.preflight.aws import quotas
from karpstack.preflight.aws.asking import Aws
from karpstack.preflight.aws.sessions import session
from karpstack.preflight.aws.subject import Caller, Subject, identify_caller
from karpstack.preflight.destroy.cluster import Cluster
from karpstack.preflight.finding import Finding, NotAskedError, UnknowableError, run
from karpstack.preflight.stack import State
from tests.unit.example_stack import eks
from tests.unit.preflight.fake_server import FakeServer

SERVICES, PODS = "/api/v1/services", "/api/v1/pods"


class Client:
    """A client whose every operation raises, or answers, what it is given; it counts the calls."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[str] = []

    def can_paginate(self, name: str) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        def operation(**given: Any) -> Any:
            self.calls.append(name)
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer

        return operation


def says(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "in AWS' words"}}, "GetRole")


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"])
def test_a_refusal_names_the_right(code: str) -> None:
    with pytest.raises(NotAskedError, match="in AWS' words") as caught:
        Aws("us-east-1", lambda service: Client(get_role=says(code))).ask("iam", "GetRole", RoleName="x")
    assert (caught.value.call, caught.value.refused) == ("iam:GetRole", True)


@pytest.mark.parametrize(
    "error", [says("Throttling"), EndpointConnectionError(endpoint_url="https://iam.amazonaws.com")]
)
def test_another_failure_is_no_refusal(error: Exception) -> None:
    with pytest.raises(NotAskedError) as caught:
        Aws("us-east-1", lambda service: Client(get_role=error)).ask("iam", "GetRole", RoleName="x")
    assert not caught.value.refused


def test_no_look_takes_longer_than_a_look_may(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    asked = Aws("us-east-1", lambda service: Pages(clock))
    assert asked.all("ec2", "DescribeVpcs", "Vpcs") == [1, 2]
    with pytest.raises(NotAskedError, match="ec2:DescribeSubnets was not answered: AWS took more than 300 s"):
        asked.all("ec2", "DescribeSubnets", "Subnets")
    clock[0] = 301.0
    assert asked.all("ec2", "DescribeVpcs", "Vpcs") == [1, 2]  # is known
    with pytest.raises(NotAskedError, match="iam:GetRole was not answered") as refused:
        asked.ask("iam", "GetRole", RoleName="x")
    assert refused.value.call == "iam:GetRole"


class Pages:
    """A client whose lists have two pages; each of those with subnets takes a minute longer than a look may."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock

    def can_paginate(self, name: str) -> bool:
        return True

    def get_paginator(self, name: str) -> Any:
        def pages() -> Iterator[dict[str, Any]]:
            for number in (1, 2):
                self._clock[0] += 360 if name == "describe_subnets" else 1
                yield {"Vpcs": [number], "Subnets": [number]}

        return SimpleNamespace(paginate=pages)


def test_what_is_not_there_is_none() -> None:
    aws = Aws("us-east-1", lambda service: Client(get_role=says("NoSuchEntity")))
    assert aws.find("iam", "GetRole", ("NoSuchEntity",), RoleName="x") is None
    with pytest.raises(NotAskedError):
        aws.find("iam", "GetRole", (), RoleName="y")


def test_the_same_is_asked_once() -> None:
    client = Client(describe_vpcs={"Vpcs": [1]})
    aws = Aws("us-east-1", lambda service: client)
    assert aws.all("ec2", "DescribeVpcs", "Vpcs") == aws.all("ec2", "DescribeVpcs", "Vpcs") == [1]
    assert client.calls == ["describe_vpcs"]


def test_a_quota_that_was_never_changed_is_the_default() -> None:
    client = Client(
        get_service_quota=says("NoSuchResourceException"),
        get_aws_default_service_quota={"Quota": {"Value": 5.0}},
        describe_vpcs={"Vpcs": [{}] * 5},
    )
    caller = Caller("arn:aws:iam::123456789012:user/me", "123456789012")
    seen = Subject(Aws("us-east-1", lambda service: client), caller, eks(), {}, State())
    assert [finding.what for finding in quotas.vpcs(seen)] == ["VPCs: 5 of 5 are in use, and the stack adds 1"]


def test_the_partition_is_the_callers() -> None:
    caller = Caller("arn:aws-cn:sts::123456789012:assumed-role/team/deployer/me", "123456789012")
    seen = Subject(Aws("cn-north-1", lambda service: Client()), caller, eks(), {}, State())
    assert seen.names == EksNames("karpstack-eks")
    assert seen.arn("iam", "role/x", region="") == "arn:aws-cn:iam::123456789012:role/x"
    assert seen.arn("sqs", "q") == "arn:aws-cn:sqs:cn-north-1:123456789012:q"


KEYS = "aws_access_key_id = {0}\naws_secret_access_key = s\n"
ROLE = "role_arn = arn:aws:iam::123456789012:role/r\nsource_profile = plain\n"
SSO = "sso_account_id = 123456789012\nsso_role_name = r\nsso_region = us-east-1\nsso_start_url = https://sso.example\n"
PROFILES = {
    "plain": KEYS.format("plain"),
    "other": KEYS.format("other"),
    "role": ROLE,
    "process": f"credential_process = /absent\n{KEYS.format('process')}",
    "sso": f"{SSO}{KEYS.format('sso')}",
    "by-process": ROLE.replace("plain", "process"),
    "by-web": f"{ROLE.partition(chr(10))[0]}\nweb_identity_token_file = /token\n{KEYS.format('bare')}",
}
WEB_IDENTITY = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/web"}
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "environment", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.mark.parametrize(
    ("profile", "variables", "method", "key"),
    [
        ("", {"AWS_PROFILE": "plain", "AWS_DEFAULT_PROFILE": "other"}, "config-file", "plain"),
        ("", {"AWS_DEFAULT_PROFILE": "other"}, "config-file", "other"),
        ("", {"AWS_PROFILE": "", "AWS_DEFAULT_PROFILE": "other"}, "config-file", "other"),
        ("", {"AWS_PROFILE": "", **ENVIRONMENT}, "env", "environment"),
        ("", {"AWS_PROFILE": "role", **WEB_IDENTITY}, "assume-role-with-web-identity", ""),
        ("", {"AWS_PROFILE": "plain", **WEB_IDENTITY}, "assume-role-with-web-identity", ""),
        ("", {"AWS_PROFILE": "role", **WEB_IDENTITY, **ENVIRONMENT}, "env", "environment"),
        ("", {"AWS_PROFILE": "plain", "AWS_ACCESS_KEY": "old", "AWS_SECRET_KEY": "s"}, "env", "old"),
        ("", {**ENVIRONMENT, "AWS_ACCESS_KEY": "old", "AWS_SECURITY_TOKEN": "of another"}, "env", "environment"),
        ("", {"AWS_PROFILE": "plain", "AWS_ACCESS_KEY": "half"}, "config-file", "plain"),
        ("", {"AWS_PROFILE": "plain", "AWS_SECRET_ACCESS_KEY": "half"}, "config-file", "plain"),
        ("role", {**WEB_IDENTITY, **ENVIRONMENT, "AWS_PROFILE": "plain"}, "assume-role", ""),
        ("plain", WEB_IDENTITY, "config-file", "plain"),
        ("process", {}, "config-file", "process"),
        ("sso", {}, "config-file", "sso"),
        ("by-web", {}, "assume-role-with-web-identity", ""),
    ],
)
def test_of_several_logins_that_of_pulumis_provider_counts(
    profile: str, variables: dict[str, str], method: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the order of its SDK, aws-sdk-go-v2: with botocore's own, another account would be asked."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", *WEB_IDENTITY, *ENVIRONMENT):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config").write_text("".join(f"[profile {name}]\n{text}" for name, text in PROFILES.items()))
    for name, value in {**variables, "AWS_CONFIG_FILE": str(tmp_path / "config")}.items():
        monkeypatch.setenv(name, value)
    credentials: Any = session(profile, "us-east-1").get_credentials()
    assert credentials.method == method
    assert not key or (credentials.access_key, credentials.token) == (key, None)


def test_what_logs_in_is_asked_through_the_checked_proxy_and_in_the_region(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """botocore's own logins take the session's method and region when they are made."""
    (tmp_path / "config").write_text("".join(f"[profile {name}]\n{text}" for name, text in PROFILES.items()))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    core = session("sso", "eu-west-1")._session
    made = {one.METHOD: one for one in core.get_component("credential_provider").providers}
    assert made["sso"]._client_creator is core.create_client
    assert made["assume-role"]._client_creator("sts").meta.region_name == "eu-west-1"


def test_the_source_of_a_role_logs_in_in_the_same_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its static keys, and not the program, which is not there."""
    (tmp_path / "config").write_text("".join(f"[profile {name}]\n{text}" for name, text in PROFILES.items()))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    role = session("by-process", "eu-west-1")._session.get_component("credential_provider").get_provider("assume-role")
    role.load()
    assert role._resolve_credentials_from_profile("process").access_key == "process"


def test_an_unknown_profile() -> None:
    with pytest.raises(UnknowableError, match="aws:profile = 'nobodys'"):
        Aws.connect("us-east-1", "nobodys")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as made:
        made.said["/version"] = 200, json.dumps({"gitVersion": "v1.34.1"})
        made.said[PODS] = 403, "no"
        made.said[SERVICES] = (
            200,
            json.dumps({"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "more"}}),
        )
        made.said[f"{SERVICES}?limit=500&continue=more"] = 200, json.dumps({"items": [{"metadata": {"name": "b"}}]})
        yield made


def cluster(folder: Path, port: int) -> Cluster:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **content}))
    return Cluster(path)


def test_a_cluster_is_read_page_by_page(server: FakeServer, tmp_path: Path) -> None:
    asked = cluster(tmp_path, server.port)
    asked.greet()
    assert [one["metadata"]["name"] for one in asked.list("/api/v1/services")] == ["a", "b"]
    assert asked.list("/apis/karpenter.sh/v1/nodepools") == []
    with pytest.raises(NotAskedError, match="403") as caught:
        asked.list("/api/v1/pods")
    assert (caught.value.call, caught.value.refused) == ("GET /api/v1/pods", True)


@pytest.mark.parametrize("allowed", [True, False])
def test_the_cluster_says_what_the_user_may_do(server: FakeServer, tmp_path: Path, allowed: bool) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    server.said[path] = 201, json.dumps({"status": {"allowed": allowed}})
    assert cluster(tmp_path, server.port).may_delete("/apis/karpenter.sh/v1/nodepools") == allowed
    (sent,) = server.sent
    wanted = {"verb": "delete", "group": "karpenter.sh", "resource": "nodepools"}
    assert json.loads(sent)["spec"]["resourceAttributes"] == wanted
    server.said[path] = 403, "{}"
    with pytest.raises(NotAskedError, match="403"):
        cluster(tmp_path, server.port).may_delete("/apis/karpenter.sh/v1/nodepools")


LOGIN_PAGE = "<html>Please sign in</html>"


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (401, '{"kind": "Status"}', "401"),
        (404, '{"message": "not found"}', "404"),
        (200, LOGIN_PAGE, "is no JSON"),
        (200, "[]", "is no object"),
        (200, "{}", "no API server answers so"),
    ],
)
def test_what_is_no_api_server_that_knows_us(
    server: FakeServer, tmp_path: Path, status: int, said: str, told: str
) -> None:
    server.said["/version"] = status, said
    asked = cluster(tmp_path, server.port)
    with pytest.raises(NotAskedError, match=told):
        asked.greet()
    # Nothing more is asked, and nothing is said to be absent.
    with pytest.raises(NotAskedError, match=f"the cluster cannot be reached: .*{told}"):
        asked.list(SERVICES)


@pytest.mark.parametrize(
    "said", [LOGIN_PAGE, "[" * 100_000, "[]", "{}", '{"items": null}', '{"items": [1]}', '{"items": {"a": 1}}']
)
def test_an_answer_of_another_shape_is_none(server: FakeServer, tmp_path: Path, said: str) -> None:
    server.said[SERVICES] = 200, said
    with pytest.raises(NotAskedError) as caught:
        cluster(tmp_path, server.port).list(SERVICES)
    assert (caught.value.call, caught.value.refused) == (f"GET {SERVICES}", False)


def test_a_collection_that_every_cluster_has_is_never_absent(server: FakeServer, tmp_path: Path) -> None:
    server.said[SERVICES] = 404, "{}"
    with pytest.raises(NotAskedError, match="404"):
        cluster(tmp_path, server.port).list(SERVICES)


@pytest.mark.usefixtures("small_answers")
def test_a_list_without_end(server: FakeServer, tmp_path: Path) -> None:
    server.said[SERVICES] = 200, '{"items": [], "metadata": {"continue": "x"}}'
    with pytest.raises(NotAskedError, match="more than 3 pages"):
        cluster(tmp_path, server.port).list(SERVICES)


@pytest.mark.usefixtures("small_answers")
def test_an_answer_that_is_too_long(server: FakeServer, tmp_path: Path) -> None:
    server.said[SERVICES] = 200, " " * 2**21
    with pytest.raises(NotAskedError, match="longer than 1048576 bytes"):
        cluster(tmp_path, server.port).list(SERVICES)


def test_no_proxy_sees_what_goes_to_this_machine(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    cluster(tmp_path, server.port).greet()
    # The server speaks no AWS; but it is the one that answered.
    with pytest.raises(NotAskedError, match=r"^no$"):
        Aws.connect("us-east-1").ask("eks", "ListClusters")


def test_a_machine_without_a_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(UnknowableError, match="export KUBECONFIG"):
        Cluster(tmp_path / "nothing")


@pytest.mark.parametrize("text", ["[]", "a: [", "x", "clusters: 1", "[" * 5_000])
def test_a_file_that_is_no_kubeconfig(tmp_path: Path, text: str) -> None:
    (tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(UnknowableError, match="export KUBECONFIG"):
        Cluster(tmp_path / "kubeconfig")


@pytest.mark.parametrize(
    "answer",
    [
        ResponseParserError("Unable to parse response"),
        {"Vpcs": {"a": 1}},
        {"Vpcs": None},
        {"ResponseMetadata": {"HTTPHeaders": {"content-type": "text/html; charset=utf-8"}}},
    ],
)
def test_what_is_no_answer_of_awss(answer: Any) -> None:
    aws = Aws("us-east-1", lambda service: Client(describe_vpcs=answer))
    with pytest.raises(NotAskedError):
        aws.all("ec2", "DescribeVpcs", "Vpcs")


@pytest.mark.parametrize("who", [{}, {"Arn": None, "Account": None}, {"Arn": "x", "Account": "1"}])
def test_an_identity_without_an_arn_is_not_awss(who: Any) -> None:
    with pytest.raises(UnknowableError, match="it is not AWS that answers"):
        identify_caller(Aws("us-east-1", lambda service: Client(get_caller_identity=who)))


def test_what_a_check_did_not_expect_hides_no_other() -> None:
    def surprised(subject: None) -> Iterator[Finding]:
        yield Finding("before", "", "", "", "")
        raise KeyError("Arn")

    checked = run({"one": surprised, "two": lambda subject: [Finding("found", "", "", "", "", "note")]}, None)
    assert [finding.severity for one in checked for finding in one.findings] == ["error", "warning", "note"]
    assert checked[0].findings[1].what == "could not be checked: KeyError: 'Arn'"
