"""The facts of Azure, from a subscription and the public price list: VM sizes, prices, locations and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, Final

from azure.core import PipelineClient
from azure.core.exceptions import AzureError
from azure.core.pipeline.policies import UserAgentPolicy
from azure.core.rest import HttpRequest, HttpResponse
from urllib3.exceptions import HTTPError

from karpstack.karpenter.fact_dates import OLD
from karpstack.karpenter.fact_files import offers_document, types_document
from karpstack.karpenter.releases import number
from karpstack.karpenter.type_facts import VM_SIZE, vm_size
from karpstack.text.answers import PAGES, SECONDS, Allowance
from karpstack.text.proxies import ProxyError, proxies_for

from ..answers import items, parse, read
from ..azure.api_versions import CONTAINER_SERVICE, SKUS, SUBSCRIPTIONS
from ..azure.asking import Azure, Patience, is_below
from ..azure.credentials import transport
from ..azure.sizes import zones_of
from ..finding import NotAskedError

Document = dict[str, Any]
#: Gives the list prices of a location, by VM size.
Prices = Callable[[str], Mapping[str, float]]

_SKUS: Final = "Microsoft.Compute/skus/read"
_LOCATIONS: Final = "Microsoft.Resources/subscriptions/locations/read"
_VERSIONS: Final = "Microsoft.ContainerService/locations/kubernetesVersions/read"
#: Nobody has to sign in here.
_PRICES_AT: Final = "https://prices.azure.com"
_PRICES: Final = "GET https://prices.azure.com/api/retail/prices"
_FILTER: Final = (
    "priceType eq 'Consumption' and serviceFamily eq 'Compute' and serviceName eq 'Virtual Machines' "
    "and armRegionName eq '{region}'"
)
#: A minor version has a year of community support and a second of Long-Term Support (AKS's version support policy).
_YEAR: Final = timedelta(days=365)


def types(azure: Azure, prices: Prices, region: str, head: Mapping[str, Any]) -> Document:
    """Return the VM sizes of a location with their prices; `head` is that of the file.

    Raises:
        NotAskedError: A call is refused or fails, or no size or price is listed.
    """
    priced = prices(region)
    listed = azure.all(_SKUS, f"{azure.scope}/providers/Microsoft.Compute/skus", SKUS, filter=f"location eq '{region}'")
    entries = [
        entry
        for one in listed
        if one.get("resourceType") == "virtualMachines" and one["name"] in priced
        if (entry := vm_size(one, {region: _zones(one, region)}, {region: priced[one["name"]]}))
    ]
    if not entries:
        raise NotAskedError(_SKUS, f"it lists no VM size of {region}", refused=False)
    return types_document({**head, "regions": [region]}, sorted(entries, key=lambda one: str(one["name"])))


def _zones(sku: Mapping[str, Any], region: str) -> list[str]:
    """The zones of a size, also those that are closed to this subscription alone."""
    return [f"{region}-{zone}" for zone in sorted(zones_of({**sku, "restrictions": ()}, region))]


def offers(azure: Azure, prices: Prices, region: str, head: Mapping[str, Any]) -> Document:
    """Return the names of the VM sizes that a location sells: those with a price.

    Raises:
        NotAskedError: The price list fails, or lists no price.
    """
    return offers_document(head, {region: []}, {name: [region] for name in prices(region) if VM_SIZE.fullmatch(name)})


def prices() -> Prices:
    """Return what asks the public price list, once for each location."""
    answers: dict[str, dict[str, float]] = {}

    def ask(region: str) -> Mapping[str, float]:
        if region not in answers:
            answers[region], _ = price_list(region)
        return answers[region]

    return ask


def price_list(region: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return USD an hour by VM size with Linux, on demand and on spot.

    The ending of an item's name says what it is, as in Karpenter (pkg/providers/pricing).

    Raises:
        NotAskedError: The price list fails, or lists no price in USD.
    """
    on_demand: dict[str, float] = {}
    spot: dict[str, float] = {}
    for item in _retail(region):
        product, sku, meter = (str(item.get(key, "")) for key in ("productName", "skuName", "meterName"))
        if not item.get("armSkuName") or product.endswith(" Windows") or meter.endswith(" Low Priority"):
            continue
        if (currency := item.get("currencyCode")) != "USD":
            raise NotAskedError(_PRICES, f"it lists prices of {region} in {currency}, not in USD", refused=False)
        of_kind = spot if sku.endswith(" Spot") or meter.endswith(" Spot") else on_demand
        if (usd := float(item["retailPrice"])) > 0:
            of_kind[str(item["armSkuName"])] = usd
    if not on_demand:
        raise NotAskedError(_PRICES, f"it lists no price of {region}", refused=False)
    return on_demand, spot


def _retail(region: str) -> Iterator[dict[str, Any]]:
    client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
        _PRICES_AT,
        policies=[UserAgentPolicy("karpstack-facts"), Patience(retry_total=3, timeout=SECONDS)],
        transport=transport(connection_timeout=5, read_timeout=30),
    )
    url, query = f"{_PRICES_AT}/api/retail/prices", {"currencyCode": "'USD'", "$filter": _FILTER.format(region=region)}
    allowance = Allowance()
    for _ in range(PAGES):
        try:
            # azure-core itself takes any text for a proxy, and prints it in its errors.
            proxies = proxies_for(url)
            ask = partial(client.send_request, HttpRequest("GET", url, params=query), stream=True, proxies=proxies)
            response, content = read(_PRICES, ask, attrgetter("_internal_response.raw"), allowance)
        except (AzureError, HTTPError, ProxyError) as error:
            raise NotAskedError(_PRICES, str(error).partition("\n")[0], refused=False) from error
        if response.status_code != 200:
            raise NotAskedError(_PRICES, f"it answers {response.status_code}", refused=False)
        page = parse(_PRICES, content)
        yield from items(_PRICES, page, "Items")
        url, query = str(page.get("NextPageLink") or ""), {}
        if not url:
            return
        if not is_below(url, _PRICES_AT):
            raise NotAskedError(_PRICES, f"the next page is elsewhere, at {url}", refused=False)
    raise NotAskedError(_PRICES, "its pages have no end", refused=False)


def locations(azure: Azure, before: Document, today: date) -> Document:
    """Return the locations with their zones; those that the subscription does not list are kept.

    Raises:
        NotAskedError: The call is refused or fails, or lists nothing.
    """
    listed = {
        str(one["name"]): [f"{one['name']}-{zone['logicalZone']}" for zone in one.get("availabilityZoneMappings") or ()]
        for one in azure.all(_LOCATIONS, f"{azure.scope}/locations", SUBSCRIPTIONS)
        if (one.get("metadata") or {}).get("regionType", "Physical") == "Physical"
    }
    if not listed:
        raise NotAskedError(_LOCATIONS, "it lists no location", refused=False)
    return {
        "cloud": "azure",
        "source": f"{_LOCATIONS}; of locations that it does not list: {before['source'].rpartition(': ')[2]}",
        "as_of": today.isoformat(),
        "announced": [name for name in before["announced"] if name not in listed],
        "regions": dict(sorted({**before["regions"], **listed}.items())),
    }


def versions(azure: Azure, region: str, before: Document, today: date) -> Document:
    """Return the calendar of Kubernetes versions, put right where the list of today contradicts it.

    The list has no days. What is offered against the calendar counts as offered until these facts are old; what is not
    offered ends today; a version that the calendar does not have begins today, with the usual two years.

    Raises:
        NotAskedError: The call is refused or fails, or lists nothing.
    """
    path = f"{azure.scope}/providers/Microsoft.ContainerService/locations/{region}/kubernetesVersions"
    listed = {str(one["version"]): one for one in azure.ask(_VERSIONS, path, CONTAINER_SERVICE).get("values", ())}
    if not listed:
        raise NotAskedError(_VERSIONS, f"it lists no version of {region}", refused=False)
    found = {
        version: day
        for version in sorted({*before["versions"], *listed}, key=number)
        if (day := _calendar(before["versions"].get(version), listed.get(version), today))
    }
    source = f"{_VERSIONS} of {region}, which has no days; the days from: {before['source'].rpartition(': ')[2]}"
    return {"cloud": "azure", "source": source, "as_of": today.isoformat(), "versions": found}


def _calendar(known: Document | None, listed: Document | None, today: date) -> Document | None:
    """The days of one version; None where there is none but a preview."""
    plans = () if listed is None or listed.get("isPreview") else listed["capabilities"]["supportPlan"]
    now, later = today.isoformat(), (today + timedelta(days=OLD)).isoformat()
    if known is None:
        if not plans:
            return None
        return {"from": now, "standard": (today + _YEAR).isoformat(), "extended": (today + 2 * _YEAR).isoformat()}
    if known["from"] > now or known.get("planned"):
        # Not offered by the calendar: it begins today, or stays planned.
        return {**{key: known[key] for key in ("standard", "extended")}, "from": now} if plans else known
    official = "KubernetesOfficial" in plans
    standard = max(known["standard"], later) if official and known["standard"] <= now else known["standard"]
    extended = max(known["extended"], later) if plans and known["extended"] <= now else known["extended"]
    standard = standard if official else min(standard, now)
    extended = max(extended, standard) if plans else min(extended, now)
    return {"from": known["from"], "standard": standard, "extended": extended}
