"""What is wrong with a snapshot, or with a file that one is made of: findings, whose words are in `findings.yaml`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from karpstack.karpenter.findings import Catalogue, Finding
from karpstack.text import shown, validation
from karpstack.text.findings import FindingsError

CATALOGUE: Final = Catalogue(Path(__file__).with_name("findings.yaml"))
#: Return the error by which a validator refuses a value, of a code and its words.
refuse: Final = partial(validation.refuse, CATALOGUE)


class SnapshotError(FindingsError):
    """A snapshot cannot be read, made or written; the text has one line for each thing to mend."""


def finding(code: str, /, file: Path | str = "", key: str = "", value: str = "", **words: object) -> Finding:
    """Return a finding.

    Args:
        code: Of an entry of `findings.yaml`.
        file: The file.
        key: The key in the file, with dots between its parts; or the path of the API.
        value: What is there, as it is shown.
        words: What stands in the braces of the entry.
    """
    return replace(CATALOGUE.finding(code, words, key=key, value=value), file=str(file))


def mistake(error: ValidationError) -> str:
    """Return where an object first differs from the format, and how."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def broken(error: Exception) -> str:
    """What went wrong while others' data was read, in the parentheses of a finding."""
    return f"{type(error).__name__}: {shown.value(str(error))}"
