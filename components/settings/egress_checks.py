"""Rules about how programs on EKS's nodes get out: proxy, certificates, mirrors, and who can be told of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from karpstack.karpenter.findings import Finding

from ..documents import proxy, user_data
from ..documents.endpoints import host_names
from ..problems import Shown, finding
from .proxy import proxy_checks

if TYPE_CHECKING:
    from .eks import ImagesSettings, SystemNodesSettings
    from .proxy import ProxySettings


def egress_checks(valid: Mapping[str, Any], today: date) -> Iterator[Finding]:
    """Problems of proxy, certificates and mirrors of nodes, and of node classes that cannot be told of them."""
    yield from proxy_checks(valid, today)
    settings: ProxySettings | None = valid.get("proxy")
    images_settings: ImagesSettings | None = valid.get("images")
    egress = proxy.Egress(
        variables=proxy.variables(http=settings.http, https=settings.https, no_proxy=proxy.direct(settings.no_proxy))
        if settings
        else {},
        certificates=valid.get("trusted_certificates") or (),
        mirrors=images_settings.node_mirrors if images_settings else {},
    )
    if egress.for_nodes:
        for name, spec in (valid.get("node_classes") or {}).items():
            yield from _check_node_class(name, spec, egress)


def _check_node_class(name: str, spec: Mapping[str, Any], egress: proxy.Egress) -> Iterator[Finding]:
    """Find problems of a node class whose nodes need the settings of the proxy."""
    family = user_data.family(spec)
    if family not in user_data.FAMILIES:
        yield finding("user-data-unknown-to-stack", ("nodeClasses", name, "amiFamily"), spec.get("amiFamily", family))
        return
    try:
        user_data.node_class_user_data(spec, egress)
    except user_data.UserDataError as error:
        # User data may hold credentials.
        yield finding(error.code, ("nodeClasses", name, "userData"), Shown("(not shown)"), **error.words)
        return
    if family == "bottlerocket" and "HTTP_PROXY" in egress.variables and "HTTPS_PROXY" not in egress.variables:
        yield finding("bottlerocket-without-https-proxy", ("proxy", "https"), None, name=name)
    if family == "al2023" and egress.variables:
        yield from _said_twice(name, spec, egress)
        for index, term in enumerate(spec.get("amiSelectorTerms") or []):
            alias = str(term.get("alias", "")) if isinstance(term, Mapping) else ""
            if _before_environment(alias.partition("@v")[2]):
                yield finding(
                    "image-too-old-for-proxy", ("nodeClasses", name, "amiSelectorTerms", index, "alias"), alias
                )


def _said_twice(name: str, spec: Mapping[str, Any], egress: proxy.Egress) -> Iterator[Finding]:
    """Variables that a node class's own NodeConfig gives to all services, and the stack too."""
    for text in user_data.node_configs(str(spec.get("userData") or "")):
        if twice := _environment(text) & user_data.both_cases(egress.variables).keys():
            yield finding(
                "proxy-set-twice", ("nodeClasses", name, "userData"), Shown("(not shown)"), twice=sorted(twice)
            )


def _environment(node_config: str) -> set[str]:
    # Only few stacks have a NodeConfig.
    import yaml

    try:
        # Aliases that are merged into each other can stand for more than there is memory.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(node_config)):
            return set()
        found: Any = yaml.safe_load(node_config)
    except (yaml.YAMLError, RecursionError):
        return set()  # nodeadm says what is wrong with it, as it did before
    for step in ("spec", "instance", "environment", "default"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return set(found) if isinstance(found, Mapping) else set()


def system_nodes_too_old(system_nodes: SystemNodesSettings, proxy: ProxySettings) -> Iterator[Finding]:
    """System nodes whose image is told of a proxy and does not listen."""
    if _before_environment(system_nodes.release_version.rpartition("-")[2]):
        yield finding("image-too-old-for-proxy", ("systemNodes", "releaseVersion"), system_nodes.release_version)


def _before_environment(release: str) -> bool:
    """Whether a release of AL2023's image, which is called by its day, knows no variables for services."""
    return release.isdecimal() and int(release) < user_data.KNOWS_ENVIRONMENT


def early_call_warning(
    settings: ProxySettings | None, certificates: Sequence[str], region: str, endpoints: Collection[str]
) -> Iterator[Finding]:
    """Warn about a call that nodes make before they trust the stack's certificates.

    On Amazon Linux 2023 nodeadm-config.service is before cloud-init.service (awslabs/amazon-eks-ami). On Bottlerocket
    pluto.service is before settings-applier.service, by which certdog adds `settings.pki` to what is trusted, and fails
    without an answer of EC2's (bottlerocket-core-kit, packages/os; sources/api/pluto/src/ec2.rs).

    Args:
        settings: karpstack:proxy.
        certificates: karpstack:trustedCertificates.
        region: Of the cluster.
        endpoints: Services that nodes reach directly, because they have endpoints in the VPC. Not those of an existing
            VPC out of which something leads: there the proxy is asked for these too, unless noProxy names them.
    """
    (host,) = host_names(["ec2"], region)
    if settings is None or settings.https is None or not certificates or "ec2" in endpoints:
        return
    if not any(f".{host}".endswith(f".{entry.removeprefix('.')}") for entry in settings.no_proxy):
        yield finding("proxy-opened-before-trust", ("proxy", "https"), settings.https, host=host)
