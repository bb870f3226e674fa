"""One comment on a pull request: made once, changed from then on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .github import GitHub, GitHubError, NoRightsError, UnclearError

_ATTEMPTS: Final = 3
_PERMISSION: Final = (
    "give the job `permissions: pull-requests: write`. GitHub says 404 too where a token may not read a repository, or "
    "where there is no such pull request"
)


@dataclass(frozen=True)
class ExistingComment:
    """A comment that stands.

    Attributes:
        page: Its address; empty if GitHub names none that can be shown.
        new: Whether it was made now, and not only changed.
        others: How many more comments of ours there are, which stay as they are.
    """

    page: str
    new: bool
    others: int


def post(
    api: GitHub, repository: str, number: int, text: str, *, author: str, create: bool = True
) -> ExistingComment | None:
    """Change our comment, or make it.

    Ours begins with the same line and is by `author`: anybody can write the marker, and a comment of theirs stays.

    Args:
        api: GitHub.
        repository: `owner/name`.
        number: Of the pull request.
        text: The comment; its first line is the marker.
        author: Login of whose token it is.
        create: Whether to make one where there is none; otherwise the answer is then None.

    Raises:
        NoRightsError: The token may not; the text names the permission.
        GitHubError: GitHub refuses otherwise, or does not answer.
    """
    try:
        attempt = 0
        while True:
            attempt += 1
            ours = _ours(api, repository, number, author, text.partition("\n")[0])
            if ours:
                changed = api.send("PATCH", f"/repos/{repository}/issues/comments/{ours[0]}", {"body": text})
                return ExistingComment(api.page(changed), new=False, others=len(ours) - 1)
            if not create:
                return None
            try:
                made = api.send("POST", f"/repos/{repository}/issues/{number}/comments", {"body": text})
                return ExistingComment(api.page(made), new=True, others=0)
            except UnclearError as error:
                # It may have been made all the same: the next turn looks, so that there are never two.
                if attempt == _ATTEMPTS:
                    raise
                api.pause(2.0**attempt, error)
    except NoRightsError as error:
        raise NoRightsError(f"{error}. Nothing was written; {_PERMISSION}") from error


def _ours(api: GitHub, repository: str, number: int, author: str, marker: str) -> list[int]:
    """Ids of our comments. Nothing else is kept, for others may write as much as they like."""
    return [
        _id(comment)
        for page in api.pages(f"/repos/{repository}/issues/{number}/comments")
        for comment in page
        if str(comment.get("body", "")).startswith(marker) and _login(comment) == author
    ]


def _login(comment: dict[str, Any]) -> object:
    user = comment.get("user")
    return user.get("login") if isinstance(user, dict) else None


def _id(comment: dict[str, Any]) -> int:
    found = comment.get("id")
    if not isinstance(found, int):
        raise GitHubError("GitHub lists a comment of ours without an id, so it cannot be changed")
    return found
