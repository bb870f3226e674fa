"""A registry of OCI artifacts: reading and writing, by the API of the OCI distribution specification.

Standard library only, as all of `engines`. Logins are those of `docker login`; the proxy and the certificate
authorities are those of the environment. A registry on this machine is asked by plain HTTP, as `crane` and `oras` do.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import ssl
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any, Final, Literal
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from karpstack.text.deadlines import within
from karpstack.text.proxies import is_loopback, proxy_for

Kind = Literal["blobs", "manifests"]
INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_SECONDS: Final = 60.0  # without a byte
IN_ALL = 120.0  # seconds for a short answer
_MOST: Final = 2**20  # bytes of an answer that signs in
_DOCKER_HUB: Final = "docker.io"


class TransferError(Exception):
    """Something cannot be read from, or written to, a place for engines; the text says why.

    Attributes:
        code: The registry's HTTP status; 0 if there was none.
    """

    def __init__(self, why: str, code: int = 0) -> None:
        super().__init__(why)
        self.code = code


class Registry:
    """A repository of a registry."""

    def __init__(self, host: str, repository: str) -> None:
        scheme = "http" if is_loopback(f"http://{host}") else "https"
        self._host = host
        self._base = f"{scheme}://{'registry-1.docker.io' if host == _DOCKER_HUB else host}/v2/{repository}/"
        self._opener = _opener(secure=scheme == "https")
        self._authorization = ""

    def open(self, kind: Kind, digest: str) -> HTTPResponse:
        """Return a response to read a blob or a manifest from.

        Raises:
            TransferError: The registry does not give it.
        """
        accept = {"Accept": f"{INDEX}, {MANIFEST}"} if kind == "manifests" else {}
        return self._ask("GET", f"{self._base}{kind}/{digest}", accept)

    def add_blob(self, digest: str, size: int, file: IO[bytes]) -> None:
        """Write a blob, unless the registry has it.

        Raises:
            TransferError: The registry does not take it.
        """
        try:
            self._ask("HEAD", f"{self._base}blobs/{digest}").close()
            return
        except TransferError as error:
            if error.code != 404:
                raise
        begun = self._ask("POST", f"{self._base}blobs/uploads/", {"Content-Length": "0"}, b"")
        location = begun.headers.get("Location", "")
        begun.close()
        try:
            place = urljoin(begun.url, location)
            if urlsplit(place).scheme not in ("http", "https"):
                raise ValueError
        except ValueError as error:
            raise TransferError(f"{self._host} names {location!r} for an upload, which is no address") from error
        place += f"{'&' if '?' in place else '?'}{urlencode({'digest': digest})}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        self._ask("PUT", place, headers, file).close()

    def add_manifest(self, name: str, content: bytes, media_type: str) -> None:
        """Write a manifest or an index.

        Args:
            name: A digest or a tag.

        Raises:
            TransferError: The registry does not take it.
        """
        self._ask("PUT", f"{self._base}manifests/{name}", {"Content-Type": media_type}, content).close()

    def _ask(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | IO[bytes] | None = None
    ) -> HTTPResponse:
        said = f"{method} {url.partition('?')[0]}"  # an upload's query may be a secret
        for last in (False, True):
            if body is not None and not isinstance(body, bytes):
                body.seek(0)
            request = Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310  # see `Registry`
            # Neither a redirection nor an upload elsewhere gets the login, and who is there cannot ask for it.
            if self._authorization and self._is_own(url):
                request.add_unredirected_header("Authorization", self._authorization)
            try:
                ask: Callable[[], HTTPResponse] = partial(self._opener.open, request, timeout=_SECONDS)
                return ask() if method == "PUT" else within(IN_ALL, ask)  # an upload takes its time
            except HTTPError as error:
                error.close()
                if error.code == 401 and not last and self._is_own(error.url):
                    self._authorization = self._sign_in(error.headers.get("WWW-Authenticate", ""))
                    continue
                fix = f"; log in with: docker login {self._host}" if error.code in (401, 403) else ""
                raise TransferError(f"{said}: {error.code} {error.reason}{fix}", error.code) from error
            except (OSError, HTTPException, ValueError) as error:  # a redirection to what is no address, for example
                raise TransferError(f"{said}: {getattr(error, 'reason', error)}") from error
        raise TransferError(f"{said}: 401")

    def _is_own(self, url: str) -> bool:
        return urlsplit(url)[:2] == urlsplit(self._base)[:2]

    def _sign_in(self, challenge: str) -> str:
        """Return the value of a header that answers the registry's challenge."""
        kind, _, rest = challenge.partition(" ")
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        login = _login(self._host)
        if kind.lower() == "basic" and login and login.user:
            return login.basic
        realm = fields.get("realm", "")
        if kind.lower() == "bearer" and self._may_sign_in(realm):
            query = {name: fields[name] for name in ("service", "scope") if name in fields}
            return f"Bearer {self._token(realm, query, login)}"
        raise TransferError(f"{self._host} asks for a login; log in with: docker login {self._host}")

    def _may_sign_in(self, realm: str) -> bool:
        """Whether the login may go to an address: by TLS; on this machine only if the registry is there too.

        The registry names it, and what answers goes back to the registry: `file:` would be a file of the user's.
        """
        try:
            scheme = urlsplit(realm).scheme
            return scheme == "https" or (scheme == urlsplit(self._base).scheme and is_loopback(realm))
        except ValueError:
            return False

    def _token(self, realm: str, query: dict[str, str], login: _Login | None) -> str:
        if login and not login.user:
            form = {"grant_type": "refresh_token", "client_id": "karpstack", "refresh_token": login.secret, **query}
            request = Request(realm, data=urlencode(form).encode())  # noqa: S310  # https, or this machine
        else:
            request = Request(f"{realm}{'&' if '?' in realm else '?'}{urlencode(query)}")  # noqa: S310  # the same
            if login:
                request.add_unredirected_header("Authorization", login.basic)
        try:
            found = json.loads(within(IN_ALL, partial(self._read, request)))
            token = str(found.get("token") or found["access_token"])
            if not (token.isascii() and token.isprintable()):
                raise ValueError("its token can be no header")
            return token
        except (OSError, HTTPException, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
            raise TransferError(
                f"{self._host} does not accept the login ({error}); log in with: docker login {self._host}"
            ) from error

    def _read(self, request: Request) -> bytes:
        with self._opener.open(request, timeout=_SECONDS) as response:
            content: bytes = response.read(_MOST)
            return content


@dataclass(frozen=True)
class _Login:
    """A login; without a user, the secret is a token that others are asked with."""

    user: str
    secret: str

    @property
    def basic(self) -> str:
        return f"Basic {base64.b64encode(f'{self.user}:{self.secret}'.encode()).decode()}"


def _login(host: str) -> _Login | None:
    """Return the login for a registry that `docker login` has stored; None if there is none."""
    names = ("https://index.docker.io/v1/",) if host == _DOCKER_HUB else (host, f"https://{host}")
    folder = os.environ.get("DOCKER_CONFIG")
    path = (Path(folder) if folder else Path.home() / ".docker") / "config.json"
    try:
        config = json.loads(path.read_bytes())
        for name in names:
            if helper := config.get("credHelpers", {}).get(name) or config.get("credsStore"):
                if found := _helped(str(helper), name):
                    return found
            elif entry := config.get("auths", {}).get(name):
                if token := entry.get("identitytoken"):
                    return _Login("", token)
                user, _, secret = base64.b64decode(entry.get("auth", "")).decode().partition(":")
                return _Login(user, secret) if user else None
    except FileNotFoundError:
        return None
    except (OSError, subprocess.SubprocessError, ValueError, AttributeError, TypeError) as error:
        raise TransferError(f"{path} cannot be used ({error}); log in again with: docker login {host}") from error
    return None


def _helped(helper: str, name: str) -> _Login | None:
    """Return what a credential helper of Docker's has for a registry."""
    asked = subprocess.run(
        [f"docker-credential-{helper}", "get"],
        input=name,
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if asked.returncode:
        return None
    found: dict[str, Any] = json.loads(asked.stdout)
    user = str(found.get("Username", ""))
    return _Login("" if user == "<token>" else user, str(found.get("Secret", "")))


class _Redirections(HTTPRedirectHandler):
    """Follows redirections without reading what comes with them, which may have no end."""

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any) -> Any:
        fp.close()
        return super().http_error_302(req, io.BytesIO(), code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _Proxies(ProxyHandler):
    """Asks the project's one rule for each address, that of a redirection too."""

    def __init__(self) -> None:
        super().__init__({"http": "see proxy_open", "https": "see proxy_open"})

    def proxy_open(self, req: Request, proxy: str, type: str) -> Any:
        if found := proxy_for(req.full_url):
            return super().proxy_open(req, found, type)
        req.remove_header("Proxy-authorization")  # of the address that led here
        return None


def _opener(*, secure: bool) -> OpenerDirector:
    if not secure:  # reading all authorities takes a tenth of a second
        return build_opener(_Proxies(), _Redirections())
    context = ssl.create_default_context()  # with SSL_CERT_FILE and SSL_CERT_DIR
    if more := os.environ.get("REQUESTS_CA_BUNDLE"):
        try:
            context.load_verify_locations(**{"capath" if Path(more).is_dir() else "cafile": more})
        except OSError as error:
            raise TransferError(f"REQUESTS_CA_BUNDLE={more} cannot be read: {error}") from error
    return build_opener(_Proxies(), _Redirections(), HTTPSHandler(context=context))
