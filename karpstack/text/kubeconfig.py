"""How the cluster of a kubeconfig is asked."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from .proxies import ProxyError, is_loopback, login_to, proxy_of_cluster
from .retries import bounded
from .shown import cut, visible

_AGAIN: Final = bounded(3)
_USUAL: Final = "~/.kube/config"
_AS_ANOTHER: Final = ("as", "as-uid", "as-groups", "as-user-extra")
_LOGINS: Final = ("exec", "auth-provider", "tokenFile")
_REASON: Final = 300  # characters of what a plugin says


class LoginError(config.ConfigException, OSError):
    """The login of the kubeconfig's user failed: at first, or when it was renewed for a request. It shows no secret."""


def settings_of(kubeconfig: Path | None = None, context: str | None = None) -> client.Configuration:
    """Return the settings of a client; on this machine, the environment's proxy is not asked.

    A login that ends is renewed before a request; where that fails, the request is not sent, by a `LoginError`.

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
    _read_tokens(settings)
    try:
        settings.proxy = proxy_of_cluster(str(settings.host), settings.proxy)
    except ProxyError as error:
        raise config.ConfigException(str(error)) from error
    settings.proxy_headers = login_to(settings.proxy) if settings.proxy else None
    return settings


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

    A login that has ended is renewed here, before the time of the request begins: a plugin may ask a person.

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
    return partial(api.call_api, *request, _request_timeout=timeouts)


def _files(kubeconfig: Path | None) -> KubeConfigMerger:
    """A file that is given is one, also with a colon in its name; KUBECONFIG may list several."""
    if kubeconfig is None or not kubeconfig.exists():
        listed = str(kubeconfig or os.environ.get("KUBECONFIG") or _USUAL)
        # kubectl passes over those that are empty.
        filled = [one for one in listed.split(os.pathsep) if not Path(one).is_file() or Path(one).stat().st_size]
        return KubeConfigMerger(os.pathsep.join(filled))
    one = KubeConfigMerger("")
    one.load_config(str(kubeconfig))
    return one


def _read_tokens(settings: client.Configuration) -> None:
    """Read tokens as kubectl reads a `tokenFile`, also after the client has read the kubeconfig's again."""
    read_again: Callable[[client.Configuration], None] | None = settings.refresh_api_key_hook

    def read(asked: client.Configuration) -> None:
        if read_again:
            with _logged() as said:
                read_again(asked)
            if said:  # and the client would go on with the token that has ended
                raise _failed("which had to be renewed", said)
        asked.api_key = {name: str(value).rstrip() for name, value in asked.api_key.items()}
        asked.refresh_api_key_hook = read  # type: ignore[assignment]  # reading again sets the client's own
        if not all(value.isascii() and value.isprintable() for value in asked.api_key.values()):
            # The client's own error has the token in it.
            raise LoginError(
                "the token of the kubeconfig's user has a line break, or another character that no request can hold "
                "(the token is not shown), so the cluster cannot be asked; write it on one line, without quotes"
            )

    read(settings)


def _failed(how: str, said: Sequence[str]) -> LoginError:
    # On a terminal, the client lets the plugin write there, and then has nothing to read.
    reasons = [one for one in said if "'NoneType' object" not in one]
    why = cut(visible("; ".join(reasons)), _REASON)
    why = why or ("its own message is above" if said else "it gives neither a token nor a certificate")
    return LoginError(
        f"the login of the kubeconfig's user failed, {how}: {why}; the cluster is not asked without one, so see that "
        "the login works with kubectl, or name a user with a token or a certificate"
    )


def _log_in(settings: client.Configuration, files: KubeConfigMerger, context: str | None) -> None:
    """Let the client read the kubeconfig; where its user's login fails, the client itself would ask without one."""
    if files.config is None:
        raise config.ConfigException("there is no kubeconfig")
    # Of several files, kubectl takes the first one's, and the client the last one's.
    current = (one.get("current-context") for one in files.config_files.values())
    loader: Any = KubeConfigLoader(
        files.config, active_context=context or next(filter(None, current), None), config_base_path=None
    )
    loader._load_from_exec_plugin = partial(_run_here, loader, loader._load_from_exec_plugin)
    user = _user(files, loader)
    for key in _LOGINS:
        if not user.get(key):  # as if it were not there
            user.pop(key, None)
    named = [key for key in _LOGINS if key in user]
    provider = user.pop("auth-provider", None) or {}
    if "tokenFile" in user:
        user.pop("token", None)  # the file's counts
    # The client would ask the issuer for another token without its certificate, a proxy, or a limit of time.
    if token := (provider.get("config") or {}).get("id-token"):
        user.setdefault("token", token)
    with _logged() as said:
        loader.load_and_set(settings)
    tokens = {str(value).removeprefix("Bearer").strip() for value in settings.api_key.values()}
    has_token = bool(tokens - {"", "None"})  # what the client makes of a null
    if said or (named and not (has_token or settings.cert_file)):
        raise _failed(f"by {' or '.join(named)}", said)
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


def _run_here(loader: Any, load: Callable[[], object]) -> object:
    """Run a plugin where kubectl does; the client itself would run it in the folder of the cluster's file."""
    of_cluster = loader._cluster.path
    loader._cluster.path = str(Path.cwd() / "kubeconfig")
    try:
        return load()
    finally:
        loader._cluster.path = of_cluster


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
    for part, key in ((user, "client-certificate"), (user, "client-key"), (plugin, "command")):
        if part.get(key) and (key != "command" or os.sep in part[key]):
            part[key] = str(Path(found.path).absolute().parent / part[key])
    if any(user.get(key) for key in _AS_ANOTHER):
        raise config.ConfigException(
            "the kubeconfig's user acts as another (`as`), which this client cannot do: it would ask as the user "
            "itself; name a user without it"
        )
    return user


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Yield what the client logs about a failed login, and keep it from stderr."""
    said: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.module == "kube_config":
                said.append(record.getMessage())

    root, heard = logging.getLogger(), Heard()
    root.addHandler(heard)
    try:
        yield said
    finally:
        root.removeHandler(heard)
