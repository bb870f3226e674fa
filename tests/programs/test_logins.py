"""A cluster is asked with the login of the kubeconfig's user, or not at all; so is an account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import psutil
import pytest
import yaml
from botocore.exceptions import CredentialRetrievalError
from kubernetes import client
from kubernetes.config import ConfigException
from pulumi import RunError

from karpstack.components.kubernetes.accepted import wait_until_accepted
from karpstack.components.kubernetes.live import wait_until_served
from karpstack.components.workloads.api_client import _within, bound, query
from karpstack.components.workloads.running import scaled_by, workloads_or_refusal
from karpstack.scale_test.connecting import connect
from karpstack.scale_test.recording.following import BrokenError, Resource
from karpstack.scale_test.recording.request import ask, version
from karpstack.snapshot.cluster import ClusterError, take
from karpstack.text.aws_login import CoreSession
from karpstack.text.deadlines import within
from karpstack.text.exec_plugin import Login, PluginError, RenewedLogin
from karpstack.text.exec_plugin import run as run_plugin
from karpstack.text.kubeconfig import LoginError, settings_of
from tests.unit.preflight.fake_server import FakeServer
from tests.unit.test_live import run

ROOT = Path(__file__).resolve().parents[2]
V1 = "client.authentication.k8s.io/v1"


def kubeconfig(folder: Path, user: dict[str, Any]) -> Path:
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "a",
                "clusters": [{"name": "a", "cluster": {"server": "https://cluster.example"}}],
                "users": [{"name": "a", "user": user}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            }
        )
    )
    return path


def plugin(script: str) -> dict[str, Any]:
    return {"exec": {"apiVersion": V1, "command": "sh", "args": ["-c", script]}}


def status(**found: str | None) -> str:
    return f"echo '{json.dumps({'apiVersion': V1, 'kind': 'ExecCredential', 'status': found})}'"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (
            {"exec": {"apiVersion": V1, "command": "/missing"}},
            "by exec: /missing cannot be started",
        ),
        (plugin("exit 3"), "by exec: it ended with 3, and its own message, if it has one, is above;"),
        (plugin("echo '[]'"), "by exec: what it wrote is no ExecCredential in JSON"),
        (plugin("echo 'token: t'"), "by exec: what it wrote is no ExecCredential in JSON"),
        ({"token": ["t"]}, "the token of the kubeconfig's user is no text"),
        (plugin(status(token="t", expirationTimestamp="soon")), "by exec: what it wrote is no ExecCredential in JSON"),
        (plugin(status(token="t").replace("/v1", "/v2")), "by exec: it wrote no ExecCredential of .*/v1, which"),
        (plugin(status(clientCertificateData="c")), "by exec: it gives a certificate without a key"),
        ({"exec": {**plugin(status(token="t"))["exec"], "interactiveMode": "Always"}}, "there is no terminal on stdin"),
        (
            {"exec": {"apiVersion": V1, "command": "/missing", "installHint": "apt install missing"}},
            r"/missing cannot be started, because there is no such program \(apt install missing\)",
        ),
        (plugin(status(token=None)), "by exec: it gives neither a token nor a certificate"),
        (plugin(status()), "by exec: it gives neither a token nor a certificate"),
        (plugin(status(token="")), "by exec: it gives neither a token nor a certificate"),
        ({"tokenFile": "/dev/null"}, "by tokenFile: /dev/null is empty"),
        ({"token": "t", "as": "admin"}, "acts as another"),
        ({"token": "t", "as-groups": ["admins"]}, "acts as another"),
        ({"auth-provider": {"name": "gcp"}}, "by auth-provider: it gives neither"),
        ({"auth-provider": "x"}, "no kubeconfig that can be used .AttributeError"),
        ({"client-certificate-data": "xx"}, "no kubeconfig that can be used .Error: Incorrect padding"),
        ({"auth-provider": {"name": "azure"}}, "by auth-provider: it gives neither"),
        ({"auth-provider": {"name": "oidc", "config": {}}}, "by auth-provider: it gives neither"),
    ],
)
def test_a_login_that_fails_is_an_error_before_anything_is_asked(
    user: dict[str, Any], why: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigException, match=why):
        settings_of(kubeconfig(tmp_path, user))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("user", "key"),
    [
        (plugin(status(token="t")), {"BearerToken": "Bearer t"}),
        ({"token": "t"}, {"BearerToken": "Bearer t"}),
        ({"auth-provider": {"name": "oidc", "config": {"id-token": "t"}}}, {"BearerToken": "Bearer t"}),
        ({"auth-provider": {"name": "azure"}, "token": "t"}, {"BearerToken": "Bearer t"}),
        ({"client-certificate-data": "dA==", "client-key-data": "dA=="}, {}),
        ({"username": "u"}, {"BearerToken": "Basic dTo="}),
        (plugin(status(token="t", expirationTimestamp="0001-01-01T00:00:00Z")), {"BearerToken": "Bearer t"}),
        ({"nothing": "as for `kubectl proxy`"}, {}),
    ],
)
def test_a_login_that_works_is_used(user: dict[str, Any], key: dict[str, str], tmp_path: Path) -> None:
    assert settings_of(kubeconfig(tmp_path, user)).api_key == key


def test_a_login_that_cannot_be_renewed_ends_before_the_request(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = status(token="t", expirationTimestamp="2020-01-01T00:00:00Z")
    script = f"cd {tmp_path}; if [ -e a ]; then echo why >&2; exit 1; fi; touch a; {first}"
    with FakeServer() as server:
        path = kubeconfig(tmp_path, plugin(script))
        path.write_text(path.read_text().replace("https://cluster.example", f"http://127.0.0.1:{server.port}"))
        why = "by exec, which had to be asked again: it ended with 1, and its own message"
        with pytest.raises(ClusterError, match=why):
            take(path)
        (tmp_path / "a").unlink()
        api = connect(path)
        for _ in range(7):  # threads, of which each shows the plugin's message: it is not asked again at once
            with pytest.raises(BrokenError, match=why), ask(api, Resource("Pod", "/api/v1/pods"), {}, (1, 1)):
                pass
        assert server.sent == []
    assert capfd.readouterr().err == "why\nwhy\n"


def test_a_login_that_ends_is_renewed_once_for_all(tmp_path: Path) -> None:
    """Also where several threads ask: a person is not asked seven times."""
    ended, later = (
        status(token=token, expirationTimestamp=end)
        for token, end in (("old", "2020-01-01T00:00:00Z"), ("new", "2099-01-01T00:00:00+02:00"))
    )
    script = f"cd {tmp_path}; echo run >> runs; if [ -e a ]; then sleep 0.3; {later}; else touch a; {ended}; fi"
    settings = settings_of(kubeconfig(tmp_path, plugin(script)))
    assert settings.api_key == {"BearerToken": "Bearer old"}
    with ThreadPoolExecutor() as pool:
        asked = set(pool.map(settings.get_api_key_with_prefix, ["BearerToken"] * 7))
    assert asked == {"Bearer new"}
    assert (tmp_path / "runs").read_text() == "run\n" * 2


def test_a_login_that_changes_its_kind_is_not_sent_as_an_empty_token(tmp_path: Path) -> None:
    ended = status(token="t", expirationTimestamp="2020-01-01T00:00:00Z")
    now = status(clientCertificateData="c", clientKeyData="k")
    settings = settings_of(
        kubeconfig(tmp_path, plugin(f"cd {tmp_path}; test -e a && {now} || {{ touch a; {ended}; }}"))
    )
    with pytest.raises(LoginError, match="asked again: it gave a token before, and now only a certificate"):
        settings.get_api_key_with_prefix("BearerToken")


def test_a_plugin_is_asked_again_if_its_login_is_refused(tmp_path: Path) -> None:
    """As kubectl does: not each plugin says when its login ends. One that gives no other is not asked all the time."""
    given = status(token="RUN").replace("RUN", "'$(wc -l < runs)'")
    path = kubeconfig(tmp_path, plugin(f"cd {tmp_path}; echo run >> runs; {given}"))
    with FakeServer() as server:
        server.otherwise = (401, "Unauthorized")
        path.write_text(path.read_text().replace("https://cluster.example", f"http://127.0.0.1:{server.port}"))
        api = connect(path)
        for token in ("Bearer 1", "Bearer 2", "Bearer 2"):
            with pytest.raises(BrokenError, match="401"):
                version(api)
            assert server.tokens == {token}
            server.tokens.clear()


def test_only_a_login_that_has_ended_or_was_refused_is_renewed() -> None:
    later = datetime.now(UTC) + timedelta(seconds=5)
    logins = iter([Login(token, "", "", end) for token, end in (("a", later), ("b", None), ("c", None), ("", None))])
    login = RenewedLogin(lambda: next(logins), rest=0)
    for token in ("a", "b", "c"):
        login.refuse("of a login before")
        assert login.token() == token
        login.refuse(token)
    with pytest.raises(PluginError, match="now only a certificate"):
        login.token()


def test_a_plugin_that_gives_the_same_token_is_run_once_for_each_refusal() -> None:
    """kubelogin keeps its token until it ends. One 401 of an API server that starts must not have it run for ever."""
    runs = 0

    def run() -> Login:
        nonlocal runs
        runs += 1
        return Login("same", "", "", None)

    login = RenewedLogin(run, rest=0)
    login.refuse("same")
    assert [login.token() for _ in range(3)] == ["same"] * 3
    assert runs == 2


def test_a_refused_answer_does_not_wait_for_a_plugin_that_runs() -> None:
    """The time of its request would go by."""
    login: RenewedLogin

    def run() -> Login:
        if is_renewed:
            within(5, lambda: login.refuse("a"))  # as by another thread
        return Login("b" if is_renewed else "a", "", "", None)

    is_renewed = False
    login = RenewedLogin(run, rest=0)
    is_renewed = True
    login.refuse("a")
    assert login.token() == "b"


def test_a_plugin_rests_between_two_renewals() -> None:
    """Of one whose logins have ended when they come, or that fails, a person would have to answer each time."""
    ended = datetime(2020, 1, 1, tzinfo=UTC)
    answers: list[Login | PluginError] = [Login(token, "", "", ended) for token in ("a", "b")]

    def run() -> Login:
        answer = answers.pop(0)
        if isinstance(answer, PluginError):
            raise answer
        return answer

    login = RenewedLogin(run)
    assert [login.token() for _ in range(3)] == ["b"] * 3
    answers += [Login("a", "", "", ended), PluginError("closed")]
    failing = RenewedLogin(run)
    for _ in range(3):
        with pytest.raises(PluginError, match="closed"):
            failing.token()


@pytest.mark.parametrize(("size", "error"), [(2**21, ConnectionError), (2**10, None)])
def test_a_component_does_not_keep_an_answer_without_an_end(
    size: int, error: type[Exception] | None, tmp_path: Path
) -> None:
    with FakeServer() as server:
        server.otherwise = (200, json.dumps({"gitVersion": "v" * size, **dict.fromkeys(VERSION, "x")}))
        api = client.ApiClient(client.Configuration(host=f"http://127.0.0.1:{server.port}"))
        bound(api, 2**20)
        with pytest.raises(error, match="more than 1 MiB") if error else nullcontext():
            assert client.VersionApi(api).get_code().git_version == "v" * size
    written = kubeconfig(tmp_path, {"token": "t"}).read_text()
    assert query(written, lambda api: api.call_api.__module__) == bound.__module__


#: What the client wants of an API server's version, beside its name.
VERSION = ("buildDate", "compiler", "gitCommit", "gitTreeState", "goVersion", "major", "minor", "platform")


def test_a_certificate_of_the_cluster_that_is_missing_is_an_error_of_the_login(tmp_path: Path) -> None:
    asked = {**plugin(status(token="t"))["exec"], "provideClusterInfo": True}
    with pytest.raises(PluginError, match=r"certificate-authority cannot be read: .*No such file"):
        run_plugin(asked, {"certificate-authority": "missing"}, tmp_path)


@pytest.mark.parametrize(
    "own", [{"token": "t"}, {"username": "u", "password": "p"}, {"client-certificate-data": "dA=="}]
)
def test_a_user_with_a_login_beside_its_plugin_logs_in_with_it(own: dict[str, Any], tmp_path: Path) -> None:
    """As kubectl, which then asks no plugin."""
    settings = settings_of(kubeconfig(tmp_path, {"exec": {"apiVersion": V1, "command": "/missing"}, **own}))
    assert bool(settings.api_key) != bool(settings.cert_file)


def test_a_plugin_may_give_a_certificate_and_a_token(tmp_path: Path) -> None:
    both = plugin(status(token="t", clientCertificateData="CERTIFICATE", clientKeyData="KEY"))
    settings = settings_of(kubeconfig(tmp_path, both))
    assert settings.api_key == {"BearerToken": "Bearer t"}
    assert Path(str(settings.cert_file)).read_text() == "CERTIFICATE"
    assert Path(str(settings.key_file)).read_text() == "KEY"


def test_a_plugin_is_told_of_the_cluster_as_kubectl_tells_it(tmp_path: Path) -> None:
    """https://kubernetes.io/docs/reference/config-api/client-authentication.v1/"""
    script = f'printf "%s" "$KUBERNETES_EXEC_INFO ${{EMPTY-unset}}$MINE" > {tmp_path}/told; {status(token="t")}'
    user = plugin(script)
    user["exec"] |= {"provideClusterInfo": True, "env": [{"name": "MINE", "value": "set"}, {"name": "EMPTY"}]}
    written = yaml.safe_load(kubeconfig(tmp_path, user).read_text())
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    written["clusters"][0]["cluster"] |= {"certificate-authority": "ca", "extensions": [extension]}
    (tmp_path / "ca").write_text("t")
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(written))
    settings_of(tmp_path / "kubeconfig")
    told, _, mine = (tmp_path / "told").read_text().rpartition(" ")
    assert mine == "set"
    assert json.loads(told) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://cluster.example",
                "certificate-authority-data": "dA==",
                "config": {"audience": "a"},
            },
        },
    }


def test_keys_of_a_user_that_are_empty_are_none(tmp_path: Path) -> None:
    empty = {"tokenFile": "", "exec": None, "as": "", "token": "t"}
    assert settings_of(kubeconfig(tmp_path, empty)).api_key == {"BearerToken": "Bearer t"}


def test_a_token_is_read_from_its_file_before_each_request(tmp_path: Path) -> None:
    """Others write a new one before the old one ends. It may end with a line break, as `echo` writes it."""
    (tmp_path / "token").write_text("t\n")
    written = kubeconfig(tmp_path, {"tokenFile": str(tmp_path / "token"), "token": "another"})
    settings = settings_of(written)
    for token in ("t", "new"):
        (tmp_path / "token").write_text(f"{token}\n")
        assert settings.get_api_key_with_prefix("BearerToken") == f"Bearer {token}"
    # It may be being written just now; kubectl goes on with the last one.
    (tmp_path / "token").write_text("")
    assert settings.get_api_key_with_prefix("BearerToken") == "Bearer new"
    (tmp_path / "token").unlink()
    assert settings.get_api_key_with_prefix("BearerToken") == "Bearer new"
    with pytest.raises(ConfigException, match=r"by tokenFile: .*No such file"):
        settings_of(written)


def test_an_error_does_not_show_the_user(tmp_path: Path) -> None:
    written = kubeconfig(tmp_path, {"token": "s3cret"})
    written.write_text(written.read_text().replace("  user:\n", "  other:\n"))
    with pytest.raises(ConfigException, match="Expected key user in") as raised:
        settings_of(written)
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_of_several_kubeconfigs_the_first_ones_context_is_meant(tmp_path: Path) -> None:
    """As kubectl reads KUBECONFIG; the client itself would take the last one's."""
    paths = []
    for name in ("none", "a", "b"):
        (tmp_path / name).mkdir()
        path = kubeconfig(tmp_path / name, {"token": name})
        path.write_text(path.read_text().replace("name: a", f"name: {name}").replace(": a\n", f": {name}\n"))
        paths.append(path)
    paths[0].write_text(paths[0].read_text().replace("current-context: none", "current-context: ''"))
    together = Path(os.pathsep.join(map(str, paths)))
    assert settings_of(together).api_key == {"BearerToken": "Bearer a"}
    assert settings_of(together, "b").api_key == {"BearerToken": "Bearer b"}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("users:\n- user: {token: 's3cret: b}\n", "found unexpected end of stream in line 3"),
        ("users:\n- user: {token: *s3cret}\n", "found undefined alias in line 2"),
        ("users:\n- user: {token: !s3cret x}\n", "could not determine a constructor for the tag in line 2"),
        ("users:\n- user: {token: !!int s3cret}\n", "ValueError"),
        ("a: s3cret\x00\n", "special characters are not allowed"),
    ],
)
def test_a_kubeconfig_that_is_no_yaml_is_told_without_its_content(content: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(content)
    for named in (tmp_path / "kubeconfig", Path(os.pathsep.join((f"{tmp_path}/kubeconfig", "/missing")))):
        with pytest.raises(ConfigException, match=rf"it is no YAML \({why}\)") as raised:
            settings_of(named)
        assert "s3cret" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("kind", ["clusters", "users", "contexts"])
def test_a_name_that_a_kubeconfig_has_twice_is_an_error(kind: str, tmp_path: Path) -> None:
    """As for kubectl; the client itself takes the first."""
    path = kubeconfig(tmp_path, {"token": "t"})
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**content, kind: content[kind] * 2}))
    with pytest.raises(ConfigException, match=f"has a twice in its {kind}"):
        settings_of(path)


def test_a_tilde_in_kubeconfig_is_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl, which would read another file, or none; unlike in a parameter of ours."""
    kubeconfig(tmp_path, {"token": "t"})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert settings_of(Path("~/kubeconfig")).api_key == {"BearerToken": "Bearer t"}
    monkeypatch.setenv("KUBECONFIG", "~/kubeconfig")
    with pytest.raises(ConfigException, match="there is no kubeconfig at ~/kubeconfig"):
        settings_of()


def test_an_empty_kubeconfig_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty := tmp_path / "empty").touch()
    listed = os.pathsep.join(map(str, (empty, tmp_path / "missing", kubeconfig(tmp_path, {"token": "t"}))))
    assert settings_of(Path(listed)).host == "https://cluster.example"
    # Of `KUBECONFIG=$KUBECONFIG:$HOME/mine`, where there was none before.
    for unset in (f":{tmp_path}/kubeconfig", f"{tmp_path}/kubeconfig:"):
        monkeypatch.setenv("KUBECONFIG", unset)
        assert settings_of().host == "https://cluster.example"


@pytest.mark.parametrize("is_redirected", [False, True])
def test_what_a_plugin_asks_of_a_person_is_shown(is_redirected: bool, tmp_path: Path) -> None:
    """Also if the output is redirected, as with kubectl. If nobody sees a device code, the command waits forever."""
    asked = "test -t 0 && echo enter the code ABCD >&2; read answer; echo $answer >&2; exit 1"
    path = kubeconfig(tmp_path, plugin(asked))
    script = f"from pathlib import Path; from karpstack.text.kubeconfig import settings_of; settings_of(Path('{path}'))"
    master, terminal = os.openpty()
    os.write(master, b"typed\n")
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdin=terminal,
        stdout=subprocess.DEVNULL if is_redirected else terminal,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(terminal)
    os.close(master)
    assert done.stderr.startswith("enter the code ABCD\ntyped\n")
    assert "by exec: it ended with 1, and its own message, if it has one, is above; the cluster is not" in done.stderr


def test_a_plugin_is_that_of_the_users_file_and_runs_where_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files, as kubectl reads them: one has the cluster, the other the user."""
    for name, keys in (("a", ("clusters",)), ("b", ("users", "contexts", "current-context"))):
        (tmp_path / name).mkdir()
        whole = yaml.safe_load(kubeconfig(tmp_path, {"exec": {"apiVersion": V1, "command": "./plugin"}}).read_text())
        (tmp_path / name / "config").write_text(yaml.safe_dump({key: whole[key] for key in keys}))
        (tmp_path / name / "plugin").write_text(f"#!/bin/sh\npwd >> {tmp_path}/ran\n{status(token=name)}\n")
        (tmp_path / name / "plugin").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    found = settings_of(Path(os.pathsep.join((f"{tmp_path}/a/config", f"{tmp_path}/b/config"))))
    assert found.api_key == {"BearerToken": "Bearer b"}
    assert (tmp_path / "ran").read_text().split() == [str(tmp_path)]


def test_a_certificate_is_that_beside_the_users_file(tmp_path: Path) -> None:
    """Of two files with another user's under the same name beside the cluster."""
    user = {"client-certificate": "me.pem", "client-key": "me.key"}
    for name, keys in (("a", ("clusters",)), ("b", ("users", "contexts", "current-context"))):
        (tmp_path / name).mkdir()
        whole = yaml.safe_load(kubeconfig(tmp_path, user).read_text())
        (tmp_path / name / "config").write_text(yaml.safe_dump({key: whole[key] for key in keys}))
        for file in user.values():
            (tmp_path / name / file).write_text(name)
    found = settings_of(Path(os.pathsep.join((f"{tmp_path}/a/config", f"{tmp_path}/b/config"))))
    assert (found.cert_file, found.key_file) == (f"{tmp_path}/b/me.pem", f"{tmp_path}/b/me.key")


def test_a_kubeconfig_that_is_given_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "kind").mkdir()
    path = kubeconfig(tmp_path / "kind", {"token": "t"})
    named = path.with_name("kind:prod")
    path.rename(named)
    kubeconfig(tmp_path / "kind", {"token": "of another"}).rename(named.with_name("kind"))
    assert settings_of(named).api_key == {"BearerToken": "Bearer t"}


def test_a_user_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    written = kubeconfig(tmp_path, {"token": "t"})
    written.write_text(written.read_text().replace("user: a", "user: ghost"))
    with pytest.raises(ConfigException, match="the context names the user ghost, which is not there"):
        settings_of(written)


def test_a_login_does_not_go_over_the_network_as_it_is(tmp_path: Path) -> None:
    written = kubeconfig(tmp_path, {"token": "s3cret"})
    written.write_text(written.read_text().replace("https:", "http:"))
    with pytest.raises(ConfigException, match=r"http://cluster.example has no TLS") as raised:
        settings_of(written)
    assert "s3cret" not in str(raised.value)


PROFILES = {
    "token file": (
        "role_arn = arn:aws:iam::1:role/r\nweb_identity_token_file = /nope",
        "No such file or directory: '/nope'",
    ),
    "no program": ("credential_process = /absent", "No such file or directory: '/absent'"),
    "an ended login": ("credential_process = {ended}", "the refreshed credentials are still expired"),
    "no JSON": ("credential_process = echo hello", "answers with no login"),
    "a code": (
        "role_arn = arn:aws:iam::1:role/r\nsource_profile = keys\nmfa_serial = arn:aws:iam::1:mfa/m",
        "which only a terminal can be asked for",
    ),
}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_login_to_aws_that_fails_is_an_error(profile: str, tmp_path: Path) -> None:
    text, why = PROFILES[profile]
    keys = "[profile keys]\naws_access_key_id = a\naws_secret_access_key = b\n"
    ended = {"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "2020-01-01T00:00:00Z"}
    (tmp_path / "ended").write_text(json.dumps(ended))
    text = text.replace("{ended}", f"cat {tmp_path}/ended")
    (tmp_path / "config").write_text(f"[profile mine]\n{text}\n{keys}")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-m", "karpstack", "preflight", "eks"],
        cwd=ROOT,
        env=variables | {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_PROFILE": "mine"},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # no terminal that could be asked
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_credential_process_that_waits_for_a_person_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the provider's SDK ends it; botocore would wait without end."""
    program = tmp_path / "login"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    program.chmod(0o755)
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {program}\n")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with pytest.raises(CredentialRetrievalError, match=r"has not ended after 0\.5 s; it may wait for a person"):
        CoreSession(process_seconds=0.5).get_credentials()
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("user", [plugin("exit 3"), {"exec": {"apiVersion": V1, "command": "/missing"}}])
def test_a_component_asks_no_cluster_without_the_login(user: dict[str, Any], tmp_path: Path) -> None:
    program = user["exec"]["command"]
    found = workloads_or_refusal(kubeconfig(tmp_path, user).read_text(), lambda _: pytest.fail("it was asked"))
    assert found.refusal.startswith(f"{program}, which makes the credentials for the cluster, gave none")


def test_a_component_reads_a_token_as_kubectl_does(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t\n")
    written = kubeconfig(tmp_path, {"tokenFile": str(tmp_path / "token")}).read_text()
    asked = query(written, lambda api: api.configuration.get_api_key_with_prefix("BearerToken"))
    assert asked == "Bearer t"
    (tmp_path / "token").write_text("s3cret\nX: y")
    with pytest.raises(ConfigException, match=r"token has a character .* \(it is not shown\)"):
        query(written, lambda _: None)
    with pytest.raises(ConfigException, match="no kubeconfig that can be used"):
        query(kubeconfig(tmp_path, {"auth-provider": {"name": "gcp"}}).read_text(), lambda _: None)


@pytest.mark.parametrize("wait", [wait_until_served, wait_until_accepted])
def test_a_component_waits_for_a_login_that_fails_at_first(
    wait: Callable[..., Coroutine[Any, Any, object]], tmp_path: Path
) -> None:
    """What makes the credentials asks a server, too."""
    there = tmp_path / "there"
    user = plugin(f"test -e {there} || {{ touch {there}; exit 1; }}; {status(token='t')}")
    written = yaml.safe_load(kubeconfig(tmp_path, user).read_text())
    with FakeServer() as server:
        server.headers["Content-Type"] = "application/json"
        server.otherwise = (200, json.dumps({"items": [], "status": {"allowed": True}, "spec": {}}))
        written["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{server.port}"
        run(wait(json.dumps(written), pauses=(0.01,)))
        assert len(server.asked) == 1


def test_a_component_waits_for_no_answer_without_an_end() -> None:
    never = Event()
    with pytest.raises(TimeoutError, match=r"^the cluster's answer takes longer than 0.1 s$"):
        _within(0.1, never.wait)
    never.set()


@pytest.mark.parametrize("said", ["<html>Please log in</html>", "", "{}", "[]", "null", '{"items": 5}'])
def test_a_component_waits_until_it_is_a_cluster_that_answers(said: str, tmp_path: Path) -> None:
    with FakeServer() as server:
        server.headers["Content-Type"] = "application/json"
        server.otherwise = (200, said)
        written = yaml.safe_load(kubeconfig(tmp_path, {"token": "t"}).read_text())
        written["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{server.port}"
        with pytest.raises(RunError, match=r"did not answer within 0\.1 s: "):
            run(wait_until_served(json.dumps(written), within=0.1, pauses=(0.01,)))


@pytest.mark.parametrize("said", ["<html>Please log in</html>", "", "{}", "[]", "null", '{"items": 5}'])
def test_a_component_takes_no_other_server_for_a_cluster(said: str, tmp_path: Path) -> None:
    with FakeServer() as server:
        server.headers["Content-Type"] = "application/json"
        server.otherwise = (200, said)
        written = kubeconfig(tmp_path, {"token": "t"}).read_text()
        found = workloads_or_refusal(
            written.replace("https://cluster.example", f"http://127.0.0.1:{server.port}"),
            lambda api: scaled_by(api, "mine", "ec2nodeclasses.karpenter.k8s.aws"),
        )
    assert found.refusal
