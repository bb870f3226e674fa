"""Questions to a cluster's API server, with the kubeconfig that Pulumi's Kubernetes provider has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration

_LONGEST: Final = 120.0  # seconds for a question, which may be several requests
_PART, _MOST = 2**16, 256 * 2**20  # bytes that are read at once, and of an answer: all nodes, or all Deployments
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_T = TypeVar("_T")


def query(kubeconfig: str, question: Callable[[ApiClient], _T]) -> _T:
    """The answer to a question to a cluster.

    Args:
        kubeconfig: As JSON or YAML: AKS writes that of its administrator in YAML.
        question: Asks with the client that it is given.

    Raises:
        ConfigException: The kubeconfig or its login cannot be used, or the proxy is no address of one; the text has no
            secret.
        OSError: The answer takes too long, or is not that of an API server.
    """
    import yaml

    return query_with_config(yaml.safe_load(kubeconfig), question)


def query_with_config(config: Mapping[str, Any], question: Callable[[ApiClient], _T]) -> _T:
    """The same with a kubeconfig that was read."""
    # Half a second, which only those pay who ask.
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException, load_kube_config_from_dict
    from urllib3 import make_headers
    from urllib3.exceptions import HTTPError

    # Empty, and not absent: the client would let NO_PROXY except the kubeconfig's `proxy-url`.
    configuration = Configuration(proxy="", no_proxy="")
    configuration.retries = False
    try:
        load_kube_config_from_dict(dict(config), client_configuration=configuration, persist_config=False)
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # the client has no error of its own for them
        raise ConfigException(f"it is no kubeconfig that can be used ({type(error).__name__})") from error
    _see_the_login(config, configuration)
    # What listens on this machine, a tunnel for example, is asked directly.
    if not configuration.proxy and urlsplit(str(configuration.host)).hostname not in _LOOPBACK:
        environment = Configuration(host=configuration.host)
        configuration.proxy, configuration.no_proxy = environment.proxy, environment.no_proxy
    try:
        login, at, _ = urlsplit(configuration.proxy or "").netloc.rpartition("@")
        if at:
            configuration.proxy_headers = make_headers(proxy_basic_auth=unquote(login))
        client = ApiClient(configuration)
    except (HTTPError, ImportError, ValueError):  # the import fails for SOCKS
        # The client's own error has the password in it.
        raise ConfigException(
            "HTTPS_PROXY, or the kubeconfig's proxy-url, is not the address of an HTTP proxy (its value is not shown, "
            "because it may hold a password), so the cluster cannot be reached; write it like "
            "http://proxy.example.com:3128"
        ) from None
    bound(client)
    with client as api:
        try:
            return _within(_LONGEST, lambda: question(api))
        except HTTPError:  # some of urllib3's errors are a ValueError too
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:  # of the client's models
            raise ConnectionError(f"what answers is no API server of Kubernetes ({type(error).__name__})") from error


def bound(client: Any, most: int = _MOST) -> None:
    """Let a client read no more of an answer than a cluster can have to say; `most` is in bytes."""
    asks = client.call_api

    def call_api(*given: Any, **options: Any) -> Any:
        answer = asks(*given, **options)
        content = bytearray()
        for part in answer.response.stream(_PART, decode_content=True):
            content += part
            if len(content) > most:
                raise ConnectionError(f"the cluster's answer has more than {most // 2**20} MiB")
        answer.data = bytes(content)
        return answer

    client.call_api = call_api


def _within(seconds: float, ask: Callable[[], _T]) -> _T:
    """Return the answer. A limit of the client starts again with each byte, and single bytes may come for ever."""
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # it is raised below
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(f"the cluster's answer takes longer than {seconds:g} s") from error


def _see_the_login(config: Mapping[str, Any], configuration: Configuration) -> None:
    """Raise `ConfigException` where the client would ask without a login, and the answer would be about rights."""
    from kubernetes.config import ConfigException

    # As kubectl reads a token from a file; the client would read it again, with its line break, before it asks.
    configuration.refresh_api_key_hook = None
    tokens = configuration.api_key = {name: str(value).rstrip() for name, value in configuration.api_key.items()}
    if not all(value.isascii() and value.isprintable() for value in tokens.values()):
        raise ConfigException("the kubeconfig's token has a character that no request can hold (it is not shown)")
    programs = [
        user["user"]["exec"].get("command")
        for user in config.get("users") or ()
        if isinstance(user.get("user"), dict) and user["user"].get("exec")
    ]
    if programs and not tokens and not configuration.cert_file:
        raise ConfigException(
            f"{programs[0]}, which makes the credentials for the cluster, gave none (its own message is in the output "
            "above); see that it is installed here and logged in"
        )
