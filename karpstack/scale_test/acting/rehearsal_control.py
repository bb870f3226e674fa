"""A client of the rehearsal's control endpoint: the cloud that can be told to fail, and says what it has."""

from __future__ import annotations

import json
import os
from typing import Any

import urllib3

_TOKEN = "KARPSTACK_REHEARSAL_TOKEN"  # noqa: S105 - the name of a variable
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 120.0  # an engine that restarts answers when it is ready again


class RehearsalError(RuntimeError):
    """The rehearsal did not do what it was asked; the text is its own."""


class RehearsalControl:
    """The control endpoint of one rehearsal.

    Args:
        url: Its address, as KARPSTACK_REHEARSAL_URL has it. The token that it wants to see is that of
            KARPSTACK_REHEARSAL_TOKEN: a secret that goes through no variable of a playbook, which may be logged.

    Attributes:
        url: The same, without a slash at its end.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ.get(_TOKEN, '')}",
        }

    def out_of_capacity(self, offerings: dict[str, Any]) -> None:
        """Let offerings run short: some of `instanceTypes`, `capacityTypes` and `zones`."""
        self._ask("POST", "/faults", {"kind": "out-of-capacity", **offerings})

    def throttle(self, calls: int) -> None:
        """Throttle the next so many calls that launch instances."""
        self._ask("POST", "/faults", {"kind": "throttle", "calls": calls})

    def clear(self) -> list[dict[str, Any]]:
        """End all faults; those that were set, each with its `hits`: how many calls met it."""
        return list(self._ask("DELETE", "/faults")["faults"])

    def interruption(self, kind: str, instance: str) -> None:
        """Let the cloud tell of an instance that it will take back, or had better be left.

        Raises:
            RehearsalError: Nobody got the event: the stack's rules or its queue do not work.
        """
        deliveries = self._ask("POST", "/interruptions", {"kind": kind, "instance": instance})["deliveries"]
        problems = [f"{delivery['queue']}: {delivery['problem']}" for delivery in deliveries if delivery["problem"]]
        if problems or not deliveries:
            raise RehearsalError(
                f"the notice about {instance} did not reach the controller's queue: "
                f"{'; '.join(problems) or 'no rule of the account asks for it'}; look at the stack's event rules"
            )

    def publish_image(self) -> list[str]:
        """Let the cloud publish a newer image of nodes, of each family; the releases."""
        return list(self._ask("POST", "/images")["published"])

    def skip(self, seconds: float) -> None:
        """Let the cluster's time jump ahead; returns when the engines have done what became due."""
        self._ask("POST", "/clock", {"seconds": seconds})

    def restart(self, engine: str) -> None:
        """Restart an engine; returns when it is ready again."""
        self._ask("POST", "/restarts", {"engine": engine})

    def resources(self) -> dict[str, list[Any]]:
        """Kind -> what of Karpenter's making there is now."""
        return dict(self._ask("GET", "/resources"))

    def _ask(self, method: str, path: str, content: object = None) -> Any:
        """Ask, and give the answer's content.

        Raises:
            RehearsalError: It refused, or does not answer.
        """
        try:
            with urllib3.PoolManager(retries=False) as http:
                answer = http.request(
                    method,
                    self.url + path,
                    body=None if content is None else json.dumps(content).encode(),
                    headers=self._headers,
                    timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_ANSWER_SECONDS),
                )
        except urllib3.exceptions.HTTPError as error:
            raise RehearsalError(f"the rehearsal at {self.url} does not answer: {error}; is the stack up?") from error
        text = answer.data.decode(errors="replace")
        try:
            parsed = json.loads(text) if text else {}
        except json.JSONDecodeError:
            parsed = {"error": text[:500]}
        if answer.status >= 400:
            raise RehearsalError(str(parsed.get("error", text)) if isinstance(parsed, dict) else text)
        return parsed
