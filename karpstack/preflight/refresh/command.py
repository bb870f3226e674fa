"""`karpstack facts aws us-east-1`: get newer facts and write them into the project."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from karpstack.karpenter import fact_files
from karpstack.karpenter.fact_files import FactsError
from karpstack.text import files
from karpstack.text.codes import Code, reported
from karpstack.text.files import OutputError
from karpstack.text.shown import visible

from ..answers import OTHER_SHAPE
from ..aws.asking import Aws
from ..azure.asking import Azure
from ..azure.credentials import login, subscription
from ..finding import InputError, NotAskedError, UnknowableError
from . import aws, azure

_CODES: Final[Mapping[type[BaseException], Code]] = {
    InputError: Code.WRONG,
    UnknowableError: Code.UNKNOWN,
    FactsError: Code.WRONG,
    OutputError: Code.WRONG,
    OSError: Code.WRONG,
}

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


@reported(_CODES)
def run(
    cloud: Literal["aws", "azure"],
    regions: Sequence[str],
    *,
    profile: str = "",
    subscription_id: str | None = None,
    into: Path | None = None,
    form: Literal["text", "json"] = "text",
) -> int:
    """Get the facts of regions and write them.

    Returns:
        `Code.NO` if some facts keep their old value and date; `Code.UNKNOWN` if all do.
    """
    folder = _folder(into)
    sources = _sources(cloud, profile, subscription_id)
    missed = list(refresh(sources, regions, folder, date.today()))
    wanted = len(regions) * len(sources.regional) + len(sources.general)
    if form == "json":
        print(json.dumps({"folder": str(folder), "wanted": wanted, "kept": missed}, indent=2))
        return _code(missed, wanted)
    for line in missed:
        print(f"error: {visible(line)}", file=sys.stderr)
    print(f"{wanted - len(missed)} of {wanted} facts refreshed in {visible(folder)}")
    return _code(missed, wanted)


def _code(missed: Sequence[str], wanted: int) -> int:
    return Code.GOOD if not missed else Code.NO if len(missed) < wanted else Code.UNKNOWN


def refresh(sources: Sources, regions: Sequence[str], folder: Path, today: date) -> Iterator[str]:
    """Get all files of some regions and write each that could be got; yield a sentence for each that could not.

    Raises:
        OutputError: Another file would be written over.
        FactsError: A file in the folder is no file of facts.
        OSError: A file cannot be written.
    """
    for name in (*sources.general, *sources.regional):
        files.check_output(folder / name, "--into", "file of facts", fact_files.begins_as_one)
    for name, of_cloud in sources.general.items():
        why = ""
        for region in regions:  # the first that answers is enough
            _progress(f"{name}: asking in {region}")
            try:
                document = of_cloud(region, fact_files.load(name), today)
            except (NotAskedError, *OTHER_SHAPE) as error:
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
            except (NotAskedError, *OTHER_SHAPE) as error:
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
    raise InputError(
        f"{Path.cwd()}: neither this folder nor one above it has a Pulumi.yaml, so no program would read the facts; "
        "run the command in your project, or name the folder with --into"
    )


def _sources(cloud: Literal["aws", "azure"], profile: str, subscription_id: str | None) -> Sources:
    if cloud == "aws":
        return aws_sources(lambda region: Aws.connect(region, profile))
    raw = {"azure-native:subscriptionId": subscription_id} if subscription_id else {}
    found = subscription(raw)
    if not found:
        raise InputError(
            "no subscription is named, so the VM sizes cannot be asked for; give --subscription ID, or set "
            "ARM_SUBSCRIPTION_ID"
        )
    return azure_sources(Azure(found, login(raw)))
