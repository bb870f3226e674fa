"""How the cluster of a kubeconfig is asked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
import yaml
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from . import exec_plugin
from .proxies import ProxyError, is_loopback, login_to, proxy_of_cluster
from .retries import bounded
from .shown import cut, visible

_AGAIN: Final = bounded(3)
_USUAL: Final = "~/.kube/config"
_AS_ANOTHER: Final = ("as", "as-uid", "as-groups", "as-user-extra")
_LOGINS: Final = ("auth-provider", "exec", "tokenFile")
#: With one of these, kubectl asks no plugin.
_OWN: Final = ("token", "username", "client-certificate", "client-certificate-data")
_REASON: Final = 300  # characters of why a login failed


class LoginError(config.ConfigException, OSError):
    """The login of the kubeconfig's user failed: at first, or when it was renewed for a request. It shows no secret."""


def settings_of(kubeconfig: Path | None = None, context: str | None = None) -> client.Configuration:
    """Return the settings of a client; on this machine, the environment's proxy is not asked.

    A token that ends, or whose file is written again, is renewed before a request; where that fails, the request is not
    sent, by a `LoginError`. A plugin's certificate is not renewed.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.
        context: Its context; None for the current one.

    Raises:
        config.ConfigException: The kubeconfig, its login or token, or the proxy that it or the environment names,
            cannot be used; no error shows a secret.
        OSError: It cannot be read.
    """
    # Empty, and not absent: the client would take a proxy of the environment, and let NO_PROXY except a `proxy-url`.
    settings = client.Configuration(proxy="", no_proxy="")
    settings.retries = _AGAIN
    try:
        _log_in(settings, _files(kubeconfig), context)
    except config.ConfigException as error:
        # Where a key is missing, the client's own text has the whole user in it.
        raise config.ConfigException(str(error).partition("/{")[0]) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # the client has no error of its own for them
        raise config.ConfigException(
            f"it is no kubeconfig that can be used ({type(error).__name__}: {error})"
        ) from error
    if not settings.verify_ssl:
        # The kubeconfig says so, and kubectl is silent.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    try:
        settings.proxy = proxy_of_cluster(str(settings.host), settings.proxy)
    except ProxyError as error:
        raise config.ConfigException(str(error)) from error
    settings.proxy_headers = login_to(settings.proxy) if settings.proxy else None
    return settings


def current_context(kubeconfig: Path | None = None) -> str:
    """Return the name of the context that `settings_of` takes without one; empty if there is none.

    Args:
        kubeconfig: The kubeconfig; None for the usual one.

    Raises:
        config.ConfigException: There is no kubeconfig, or it is none.
        OSError: It cannot be read.
    """
    return str(_current(_files(kubeconfig)) or "")


def host_of(settings: client.Configuration) -> str:
    """Return the name that the server's certificate has to prove: that of the URL, or what the kubeconfig says instead.

    It is in lower case, and empty for an address without a host.
    """
    server = urlsplit(str(settings.host))
    proven = settings.tls_server_name if settings.verify_ssl and server.scheme == "https" else None
    return str(proven or server.hostname or "").lower().rstrip(".")


def prepare(
    api: client.ApiClient,
    method: str,
    path: str,
    timeouts: float | tuple[float, float],
    *,
    query: Sequence[tuple[str, str]] = (),
    body: object = None,
    kind: str = "",
) -> Callable[[], Any]:
    """Return what sends a request for JSON; the client's answer is given as soon as its headers are there.

    A login that has ended, or was refused, is renewed here, before the time of the request begins: a plugin may ask a
    person.

    Args:
        api: A client with `settings_of`.
        method: Of HTTP.
        path: In the API; may have a query.
        timeouts: Seconds for each step, or to connect and between two parts of the answer.
        query: Parameters.
        body: Its content; None without.
        kind: The content's type; empty without.

    Raises:
        LoginError: The login has ended and cannot be renewed.
    """
    headers = {"Accept": "application/json", **({"Content-Type": kind} if kind else {})}
    request = api.param_serialize(
        method, path, query_params=list(query), body=body, header_params=headers, auth_settings=["BearerToken"]
    )

    def send() -> Any:
        answer = api.call_api(*request, _request_timeout=timeouts)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            renewal: Any = api.configuration.refresh_api_key_hook
            if isinstance(renewal, _Renewal):
                renewal.refuse(str(request[2]["authorization"]).removeprefix("Bearer "))
        return answer

    return send


def _files(kubeconfig: Path | None) -> KubeConfigMerger:
    """A file that is given is one, also with a colon in its name; KUBECONFIG may list several."""
    kubeconfig = kubeconfig.expanduser() if kubeconfig else None
    if kubeconfig and kubeconfig.exists():
        return _merged([kubeconfig])
    listed = str(kubeconfig or os.environ.get("KUBECONFIG") or Path(_USUAL).expanduser())
    files = [Path(one).absolute() for one in listed.split(os.pathsep) if one]
    # kubectl skips those that are missing or empty.
    found = [one for one in files if one.exists() and (one.stat().st_size or not one.is_file())]
    if not found:
        raise config.ConfigException(f"there is no kubeconfig at {listed}")
    return _merged(found)


def _merged(paths: Sequence[Path]) -> KubeConfigMerger:
    merged = KubeConfigMerger("")
    try:
        for one in paths:
            merged.load_config(str(one))
    except (yaml.YAMLError, ValueError) as error:  # the second of a tag, as `!!int`
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        # Only how it begins: what follows may be a token.
        why = str(getattr(error, "problem", None) or getattr(error, "reason", type(error).__name__)).partition(" '")[0]
        raise config.ConfigException(f"it is no YAML ({why}{where})") from None
    for path, content in merged.config_files.items():
        for kind in ("clusters", "users", "contexts"):
            names = Counter(str(one["name"]) for one in content.get(kind) or ())
            if twice := [name for name, count in names.items() if count > 1]:
                raise config.ConfigException(
                    f"{path} has {twice[0]} twice in its {kind}, so it is not known which is meant; remove one"
                )
    return merged


def _current(files: KubeConfigMerger) -> Any:
    """Of several files, kubectl takes the first one's context, and the client the last one's."""
    return next(filter(None, (one.get("current-context") for one in files.config_files.values())), None)


def _log_in(settings: client.Configuration, files: KubeConfigMerger, context: str | None) -> None:
    """Let the client read the kubeconfig; where its user's login fails, the client itself would ask without one."""
    if files.config is None:
        raise config.ConfigException("there is no kubeconfig")
    loader: Any = KubeConfigLoader(files.config, active_context=context or _current(files), config_base_path=None)
    user = _user(files, loader)
    if not isinstance(user.get("token") or "", str):
        raise config.ConfigException("the token of the kubeconfig's user is no text (it is not shown)")
    if user.get("username"):
        user["password"] = user.get("password") or ""  # the client would send no login if there were none
    named = [key for key in _LOGINS if user.get(key)]
    provider, plugin, token_file = (user.pop(key, None) for key in _LOGINS)
    # The client would ask the issuer for another token without its certificate, a proxy, or a limit of time.
    if token := ((provider or {}).get("config") or {}).get("id-token"):
        user.setdefault("token", token)
    renewal: Any = None
    if token_file:  # it counts, and not a token beside it
        renewal = _Renewal(_kept(partial(_token_of, Path(token_file))))
        user["token"] = renewal.token()
    elif plugin and not any(user.get(key) for key in _OWN):
        cluster = loader._cluster
        login = _first(partial(exec_plugin.run, plugin, cluster.value, Path(cluster.path).parent))
        renewal = _Renewal(partial(_renewed, login), login.refuse) if login.first.token else None
        user |= login.first.keys()
    loader.load_and_set(settings)
    tokens = {str(value).removeprefix("Bearer").strip() for value in settings.api_key.values()}
    has_token = bool(tokens - {"", "None"})  # what the client makes of a null
    if named and not (has_token or settings.cert_file):
        raise _failed(f"by {' or '.join(named)}", "it gives neither a token nor a certificate")
    settings.refresh_api_key_hook = renewal
    _check_tokens(settings)
    server = urlsplit(str(settings.host))
    if "@" in server.netloc or server.query or server.fragment:
        raise config.ConfigException(
            "the kubeconfig's server has a user, a question mark or a # in its address (it is not shown, because it "
            "may hold a password), so another address would be asked; write https://HOST:PORT, and the user under users"
        )
    if has_token and server.scheme != "https" and not is_loopback(str(settings.host)):
        raise config.ConfigException(
            f"the kubeconfig's server {settings.host} has no TLS, so everybody on the way could read the login; give "
            "an address with https://"
        )


def _first(run: Callable[[], exec_plugin.Login]) -> exec_plugin.RenewedLogin:
    try:
        return exec_plugin.RenewedLogin(run)
    except exec_plugin.PluginError as error:
        raise _failed("by exec", str(error)) from error


def _renewed(login: exec_plugin.RenewedLogin) -> str:
    try:
        return login.token()
    except exec_plugin.PluginError as error:
        raise _failed("by exec, which had to be asked again", str(error)) from error


def _kept(read: Callable[[], str]) -> Callable[[], str]:
    """Return what reads a token; like kubectl, it returns the last one while there is none, as in a file being written.

    Raises:
        LoginError: There is none at first.
    """
    last = read()

    def token() -> str:
        nonlocal last
        with suppress(LoginError):
            last = read()
        return last

    return token


def _token_of(path: Path) -> str:
    """Read a token; others write a new one into its file before the old one ends."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise _failed("by tokenFile", str(error)) from error
    if not token:
        raise _failed("by tokenFile", f"{path} is empty")
    return token


@dataclass(frozen=True, eq=False)
class _Renewal:
    """What the client calls before each request, and gives it the token of now.

    Attributes:
        token: Returns it.
        refuse: Takes a token that an API server has refused.
    """

    token: Callable[[], str]
    refuse: Callable[[str], None] = lambda _: None

    def __call__(self, asked: client.Configuration) -> None:
        asked.api_key = {"BearerToken": f"Bearer {self.token()}"}
        _check_tokens(asked)


def _check_tokens(settings: client.Configuration) -> None:
    if not all(value.isascii() and value.isprintable() for value in settings.api_key.values()):
        # The client's own error has the token in it.
        raise LoginError(
            "the token of the kubeconfig's user has a line break, or another character that no request can hold "
            "(the token is not shown), so the cluster cannot be asked; write it on one line, without quotes"
        )


def _failed(how: str, why: str) -> LoginError:
    return LoginError(
        f"the login of the kubeconfig's user failed, {how}: {cut(visible(why), _REASON)}; the cluster is not asked "
        "without one, so see that the login works with kubectl, or name a user with a token or a certificate"
    )


def _user(files: KubeConfigMerger, loader: KubeConfigLoader) -> dict[str, Any]:
    """Return the user of the loader's context, as the loader reads it; empty for a context without one."""
    name = loader.current_context["context"].get("user")
    found = files.config["users"].get_with_name(name, safe=True)
    if name and not found:
        raise config.ConfigException(
            f"the context names the user {name}, which is not there; add it, or name another context"
        )
    user: dict[str, Any] = found.value["user"] or {} if found else {}
    plugin = user.get("exec") or {}
    # As kubectl, from the file that has the user; the client itself takes the cluster's.
    paths = ((user, "client-certificate"), (user, "client-key"), (user, "tokenFile"), (plugin, "command"))
    for part, key in paths:
        if part.get(key) and (key != "command" or os.sep in part[key]):
            part[key] = str(Path(found.path).absolute().parent / part[key])
    if any(user.get(key) for key in _AS_ANOTHER):
        raise config.ConfigException(
            "the kubeconfig's user acts as another (`as`), which this client cannot do: it would ask as the user "
            "itself; name a user without it"
        )
    return user
