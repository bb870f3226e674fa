"""`karpstack facts aws us-east-1`: get newer facts and write them into the project."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

from karpstack.karpenter import fact_files
from karpstack.karpenter.fact_files import FactsError
from karpstack.text import files
from karpstack.text.shown import visible

from ..aws.asking import Aws
from ..azure.asking import Azure
from ..azure.credentials import login, subscription
from ..finding import NotAskedError, UnknowableError
from . import aws, azure

_REGION: Final = re.compile(r"[a-z0-9-]+")
_DONE, _PARTLY, _NOTHING = 0, 1, 2

#: What gets a file: of a region, given the head of the file; or of the whole cloud, given the facts until now.
OfRegion = Callable[[str, Mapping[str, Any]], dict[str, Any]]
OfCloud = Callable[[str, dict[str, Any], date], dict[str, Any]]


@dataclass(frozen=True)
class Sources:
    """What gets each file of one cloud, by the file's name."""

    cloud: str
    regional: Mapping[str, OfRegion]
    general: Mapping[str, OfCloud]


def aws_sources(connect: Callable[[str], Aws]) -> Sources:
    """Return the sources of an AWS account; `connect` gives it in a region."""
    ask = cache(connect)
    return Sources(
        "aws",
        {
            "aws.json": lambda region, head: aws.types(ask, region, head),
            "offers-aws.json": lambda region, head: aws.offers(ask, region, head),
        },
        {
            "versions-aws.json": lambda region, before, today: aws.versions(ask, region, before, today),
            "images-aws.json": lambda region, before, today: aws.images(ask, region, before, today),
        },
    )


def azure_sources(asked: Azure) -> Sources:
    """Return the sources of a subscription and of Azure's public price list."""
    prices = azure.prices()
    return Sources(
        "azure",
        {
            "azure.json": lambda region, head: azure.types(asked, prices, region, head),
            "offers-azure.json": lambda region, head: azure.offers(asked, prices, region, head),
        },
        {
            "versions-azure.json": lambda region, before, today: azure.versions(asked, region, before, today),
            "locations-azure.json": lambda region, before, today: azure.locations(asked, before, today),
        },
    )


def main(words: list[str]) -> int:
    """Get the facts and write them.

    Returns:
        0; 1 if some facts could not be got; 2 if nothing was.
    """
    given = _parser().parse_args(words)
    try:
        folder = _folder(given.into)
        sources = _sources(given)
        missed = list(refresh(sources, given.regions, folder, date.today()))
    except (UnknowableError, FactsError, OSError) as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return _NOTHING
    for line in missed:
        print(f"error: {visible(line)}", file=sys.stderr)
    wanted = len(given.regions) * len(sources.regional) + len(sources.general)
    print(f"{wanted - len(missed)} of {wanted} facts refreshed in {folder}")
    return _DONE if not missed else _PARTLY if len(missed) < wanted else _NOTHING


def refresh(sources: Sources, regions: list[str], folder: Path, today: date) -> Iterator[str]:
    """Get all files of some regions and write each that could be got; yield a sentence for each that could not.

    Raises:
        FactsError: A file in the folder is no file of facts.
        OSError: A file cannot be written.
    """
    for name, of_cloud in sources.general.items():
        why = ""
        for region in regions:  # the first that answers is enough
            _progress(f"{name}: asking in {region}")
            try:
                document = of_cloud(region, fact_files.load(name), today)
            except (NotAskedError, ValueError, KeyError, TypeError) as error:
                why = _kept(name, "", error)
                continue
            _write(folder, name, document)
            why = ""
            break
        if why:
            yield why
    for name, of_region in sources.regional.items():
        for region in regions:
            _progress(f"{name}: asking for {region}")
            try:
                _write(folder, name, _with(folder, name, region, of_region, today))
            except FactsError:
                raise
            except (NotAskedError, ValueError, KeyError, TypeError) as error:
                yield _kept(name, region, error)


def _with(folder: Path, name: str, region: str, get: OfRegion, today: date) -> dict[str, Any]:
    """The project's document with a region as it is today."""
    packaged = fact_files.read(fact_files.FOLDER / name)
    has_types = "types" in packaged
    head = {"cloud": packaged["cloud"], "source": {"prices": {"name": "the cloud's price list"}}}
    if has_types:
        empty = {**head, "as_of": {}, "regions": [], "spot": packaged["spot"], "labels": [], "zones": [], "types": []}
    else:
        empty = {**head, "as_of": {}, "regions": {}, "sold": []}
    before = fact_files.read(folder / name) if (folder / name).is_file() else empty
    merged = fact_files.merged_types if has_types else fact_files.merged_offers
    document = merged(before, get(region, head), {region})
    return document | {"as_of": {**before["as_of"], region: today.isoformat()}}


def _kept(name: str, region: str, error: Exception) -> str:
    where = f"{name}{f' of {region}' if region else ''} keeps its value and its date"
    if not isinstance(error, NotAskedError):
        return f"{where}: the answer has another shape ({type(error).__name__}: {error}); report it"
    mend = f"grant {error.call} to these credentials" if error.refused else "see why the call fails, and ask again"
    return f"{where}: {error.call}: {error}; {mend}"


def _write(folder: Path, name: str, document: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files.write(folder / name, fact_files.text(document))


def _progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _folder(given: Path | None) -> Path:
    if found := given or fact_files.own_folder():
        return found
    raise UnknowableError(
        f"{Path.cwd()}: neither this folder nor one above it has a Pulumi.yaml, so no program would read the facts; "
        "run the command in your project, or name the folder with --into"
    )


def _sources(given: argparse.Namespace) -> Sources:
    if given.cloud == "aws":
        return aws_sources(lambda region: Aws.connect(region, given.profile))
    raw = {"azure-native:subscriptionId": given.subscription} if given.subscription else {}
    found = subscription(raw)
    if not found:
        raise UnknowableError(
            "no subscription is named, so the VM sizes cannot be asked for; give --subscription ID, or set "
            "ARM_SUBSCRIPTION_ID"
        )
    return azure_sources(Azure(found, login(raw)))


def _region(text: str) -> str:
    if not _REGION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no region; write it like us-east-1 or westus2")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="karpstack facts",
        description="Get newer facts (instance types, prices, Kubernetes versions, images) with your own read-only "
        "credentials, and write them to karpstack-facts/ in the project. Nothing is created or changed in the cloud. "
        "Exit code 0: all is refreshed; 1: some facts keep their old value and date; 2: nothing is refreshed.",
    )
    parser.add_argument("cloud", choices=("aws", "azure"))
    parser.add_argument("regions", nargs="+", type=_region, metavar="REGION", help="for example us-east-1, or westus2")
    parser.add_argument("--profile", default="", metavar="NAME", help="profile of the AWS CLI (default: AWS_PROFILE's)")
    parser.add_argument("--subscription", metavar="ID", help="Azure's subscription (default: ARM_SUBSCRIPTION_ID)")
    parser.add_argument(
        "--into", type=Path, metavar="FOLDER", help="folder to write (default: karpstack-facts beside Pulumi.yaml)"
    )
    return parser
