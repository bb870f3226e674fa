"""What rules read of each type of resource, and what they take it for: the one place where that is said.

Only what a rule relies on is here. A boolean that is compared with True needs no shape, for nothing else is it; neither
does a part of which only the presence counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from karpstack.karpenter.quantities import quantity
from karpstack.karpenter.requirements import OPERATORS

from . import tokens
from .values import EACH, Either, Kind, Shape, read


def shaped(token: str, properties: Mapping[str, Any], urn: str | None = None) -> Mapping[str, Any]:
    """A resource's properties as rules read them: what is of another shape raises UnreadableError.

    Args:
        token: The resource's type.
        properties: Reading one of them may raise UnknownValueError.
        urn: The resource's, where the reader has several.
    """
    typed: Mapping[str, Any] = read(properties, _SHAPES.get(token), "", urn)
    return typed


def _whole(low: int, high: int) -> Kind:
    """A number without a fraction, as a number or, as some APIs have it, in digits."""

    def accepts(value: Any) -> bool:
        if isinstance(value, str):
            return re.fullmatch(r"-?[0-9]{1,12}", value) is not None and low <= int(value) <= high
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return False
        return value == int(value) and low <= value <= high

    return Kind(f"a whole number from {low} to {high}", accepts)


def _is_quantity(value: Any) -> bool:
    try:
        return quantity(value) >= 0
    except ValueError:
        return False


def _is_share(value: Any) -> bool:
    return not isinstance(value, bool) and re.fullmatch(r"[0-9]{1,9}(\.0)?|[0-9]{1,3}%", str(value)) is not None


TEXT: Final = Kind("a text", lambda value: isinstance(value, str))
TEXTS: Final = Either((TEXT, [TEXT]))  # IAM, for one, takes a single value wherever it takes a list
COUNT: Final = _whole(0, 2**31 - 1)
PORT: Final = _whole(-1, 65_535)
QUANTITY: Final = Kind("a quantity such as 100, 500m or 4000Gi", _is_quantity)
_OPERATOR: Final = Kind(f"one of {', '.join(OPERATORS)}", lambda value: value in OPERATORS)
_SHARE: Final = Kind("a number of nodes, or a share such as 10%", _is_share)

_CONDITION: Final[Shape] = {
    **{operator: {EACH: TEXTS} for operator in ("StringEquals", "StringLike", "ArnEquals", "ArnLike")},
    EACH: {},
}
_STATEMENT: Final[Shape] = {
    "Effect": TEXT,
    "Principal": Either((TEXT, {EACH: TEXTS})),
    "Action": TEXTS,
    "NotAction": TEXTS,
    "Resource": TEXTS,
    "Condition": _CONDITION,
}
#: An IAM policy, and one on a resource.
POLICY_DOCUMENT: Final[Shape] = {"Statement": Either((_STATEMENT, [_STATEMENT]))}
# Exact values, and filters such as {"prefix": "EC2 "}.
_MATCHES: Final[Shape] = [Either((TEXT, {}))]
#: What an EventBridge rule listens for.
EVENT_PATTERN: Final[Shape] = {"source": _MATCHES, "detail-type": _MATCHES, "detail": {}}

_TAGS: Final[Shape] = {EACH: TEXT}
# Of a resource; its provider writes its own into tagsAll.
_TAGGED_BY: Final[Mapping[str, Shape]] = {"tags": _TAGS, "tagsAll": _TAGS}
_TAINT: Final[Shape] = {"key": TEXT, "value": TEXT, "effect": TEXT}
_SELECTOR_TERM: Final[Shape] = {"id": TEXT, "alias": TEXT, "name": TEXT, "ssmParameter": TEXT, "tags": {EACH: TEXT}}
_METADATA_OPTIONS: Final[Shape] = {"httpTokens": TEXT, "httpPutResponseHopLimit": COUNT}
_BLOCK_DEVICES: Final[Shape] = [{"deviceName": TEXT, "ebs": {}}]

_NODE_POOL: Final[Shape] = {
    "metadata": {"name": TEXT},
    "spec": {
        "replicas": COUNT,
        "weight": COUNT,
        "limits": {EACH: QUANTITY},
        "disruption": {
            "budgets": [{"nodes": _SHARE, "reasons": [TEXT], "schedule": TEXT, "duration": TEXT}],
            "consolidationPolicy": TEXT,
            "consolidateAfter": TEXT,
        },
        "template": {
            "metadata": {"labels": {EACH: TEXT}},
            "spec": {
                "nodeClassRef": {"group": TEXT, "kind": TEXT, "name": TEXT},
                "requirements": [{"key": TEXT, "operator": _OPERATOR, "values": [TEXT], "minValues": COUNT}],
                "taints": [_TAINT],
                "startupTaints": [_TAINT],
                "expireAfter": TEXT,
                "terminationGracePeriod": TEXT,
            },
        },
    },
}

_EC2_NODE_CLASS: Final[Shape] = {
    "metadata": {"name": TEXT},
    "spec": {
        "amiFamily": TEXT,
        "amiSelectorTerms": [_SELECTOR_TERM],
        "subnetSelectorTerms": [_SELECTOR_TERM],
        "securityGroupSelectorTerms": [_SELECTOR_TERM],
        "metadataOptions": _METADATA_OPTIONS,
        "blockDeviceMappings": _BLOCK_DEVICES,
        "kubelet": {"maxPods": COUNT},
        "tags": _TAGS,
    },
}

_EKS: Final[Shape] = {
    "vpcConfig": {"publicAccessCidrs": [TEXT]},
    "kubernetesNetworkConfig": {"serviceIpv4Cidr": TEXTS},
    "encryptionConfig": {"resources": TEXTS},
    "enabledClusterLogTypes": TEXTS,
    **_TAGGED_BY,
}

_AKS: Final[Shape] = {
    "name": TEXT,
    "apiServerAccessProfile": {"authorizedIPRanges": [TEXT]},
    "networkProfile": {"podCidr": TEXTS, "serviceCidr": TEXTS, "podCidrs": TEXTS, "serviceCidrs": TEXTS},
    "nodeProvisioningProfile": {},
    "agentPoolProfiles": [{"maxPods": COUNT}],
    "servicePrincipalProfile": {},
    "identity": {},
    "aadProfile": {},
    "oidcIssuerProfile": {},
    "securityProfile": {"workloadIdentity": {}, "azureKeyVaultKms": {}},
    **_TAGGED_BY,
}

#: The values of the charts that the rules know, together: no key means something else in another of them.
_CHART_VALUES: Final[Shape] = {
    "replicas": COUNT,
    "controller": {"resources": {"requests": {}, "limits": {}}},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": TEXT, "operator": TEXT}]}]
            }
        }
    },
    "settings": {"interruptionQueue": TEXT, "featureGates": {}},
    "routingMode": TEXT,
    "tunnelProtocol": TEXT,
    "tunnelPort": PORT,
    "ipam": {
        "mode": TEXT,
        "operator": {"clusterPoolIPv4PodCIDRList": TEXTS, "clusterPoolIPv4MaskSize": _whole(0, 32)},
    },
    "cni": {"chainingMode": TEXT},
    "encryption": {"type": TEXT},
    "sysctlfix": {},
}

_PLACE: Final[Shape] = {"name": TEXT, "namespace": TEXT}
_WORKLOAD: Final[Shape] = {
    "metadata": _PLACE,
    "spec": {"template": {"metadata": {"labels": {EACH: TEXT}}, "spec": {}}},
}
_WEBHOOKS: Final[Shape] = {"webhooks": [{"clientConfig": {"service": _PLACE}}]}

_INGRESS: Final[Shape] = {
    "cidrBlocks": TEXTS,
    "ipv6CidrBlocks": TEXTS,
    "cidrIpv4": TEXTS,
    "cidrIpv6": TEXTS,
    "prefixListIds": [TEXT],
    "prefixListId": TEXT,
    "fromPort": PORT,
    "toPort": PORT,
}
_AZURE_RULE: Final[Shape] = {
    "direction": TEXT,
    "access": TEXT,
    "sourceAddressPrefix": TEXTS,
    "sourceAddressPrefixes": TEXTS,
}

_TAGGED: Final = (
    *(tokens.SUBNET, tokens.QUEUE, tokens.AZURE_RESOURCE_GROUP, tokens.AZURE_IDENTITY),
    *(tokens.IAM_POLICY, tokens.EVENT_RULE),
)
_OF_EVENTS: Final = ("name", "eventPattern", "scheduleExpression", "eventBusName")
_ATTACHMENTS: Final = (
    *(tokens.IAM_POLICY_ATTACHMENT, tokens.IAM_GROUP_POLICY_ATTACHMENT),
    *(tokens.IAM_ROLE_POLICY_ATTACHMENT, tokens.IAM_USER_POLICY_ATTACHMENT),
)

_SHAPES: Final[Mapping[str, Shape]] = {
    **{token: {**_TAGGED_BY, **dict.fromkeys(_OF_EVENTS, TEXT)} for token in _TAGGED},
    tokens.NODE_GROUP: {
        **_TAGGED_BY,
        "launchTemplate": {"id": TEXT, "name": TEXT},
        "amiType": TEXT,
        "remoteAccess": {},
    },
    **{token: {"policyArn": TEXT} for token in _ATTACHMENTS},
    **{token: {"policyArns": [TEXT]} for token in tokens.IAM_ATTACHMENTS_EXCLUSIVE},
    **dict.fromkeys((tokens.DAEMON_SET, tokens.DEPLOYMENT, tokens.STATEFUL_SET), _WORKLOAD),
    **dict.fromkeys((tokens.MUTATING_WEBHOOKS, tokens.VALIDATING_WEBHOOKS), _WEBHOOKS),
    tokens.SERVICE: {"metadata": _PLACE, "spec": {"selector": {EACH: TEXT}}},
    tokens.API_SERVICE: {"spec": {"service": _PLACE}},
    **dict.fromkeys(tokens.with_patch(tokens.NODE_POOL), _NODE_POOL),
    tokens.NODE_OVERLAY: {"spec": {}},
    **dict.fromkeys(tokens.with_patch(tokens.EC2_NODE_CLASS), _EC2_NODE_CLASS),
    tokens.AKS_NODE_CLASS: {"metadata": {"name": TEXT}, "spec": {"maxPods": COUNT, "tags": _TAGS}},
    tokens.CLUSTER: _EKS,
    tokens.AKS_CLUSTER: _AKS,
    tokens.HELM_RELEASE: {"chart": TEXT, "version": TEXT, "values": _CHART_VALUES},
    tokens.LAUNCH_TEMPLATE: {
        "id": TEXT,
        "name": TEXT,
        "metadataOptions": _METADATA_OPTIONS,
        "blockDeviceMappings": _BLOCK_DEVICES,
        "networkInterfaces": [{}],
        **_TAGGED_BY,
    },
    tokens.VPC: {"cidrBlock": TEXTS, **_TAGGED_BY},
    tokens.TAG: {"resourceId": TEXT, "key": TEXT, "value": TEXT},
    tokens.QUEUE_POLICY: {"queueUrl": TEXT},
    tokens.MANAGED_PREFIX_LIST: {"entries": [{"cidr": TEXT}]},
    tokens.MANAGED_PREFIX_LIST_ENTRY: {"cidr": TEXT},
    tokens.SECURITY_GROUP: {"ingress": [_INGRESS], **_TAGGED_BY},
    tokens.DEFAULT_SECURITY_GROUP: {"ingress": [_INGRESS]},
    tokens.SECURITY_GROUP_RULE: _INGRESS,
    tokens.SECURITY_GROUP_INGRESS_RULE: _INGRESS,
    tokens.EVENT_TARGET: {"rule": TEXT, "arn": TEXT},
    tokens.IAM_ROLE: {"inlinePolicies": [{}], "managedPolicyArns": [TEXT], **_TAGGED_BY},
    tokens.AZURE_NETWORK: {"addressSpace": {"addressPrefixes": TEXTS}, **_TAGGED_BY},
    tokens.AZURE_SECURITY_GROUP: {"securityRules": [_AZURE_RULE]},
    tokens.AZURE_SECURITY_RULE: _AZURE_RULE,
    tokens.AZURE_ROLE_ASSIGNMENT: {"scope": TEXT, "roleDefinitionId": TEXT},
    tokens.AZURE_ROLE_DEFINITION: {"permissions": [{"actions": [TEXT], "dataActions": [TEXT]}]},
    tokens.AKS_AGENT_POOL: {},
    tokens.AZURE_FEDERATED_CREDENTIAL: {"subject": TEXT, "issuer": TEXT, "audiences": [TEXT]},
    tokens.AZURE_DIAGNOSTICS: {"resourceUri": TEXT, "logs": [{"category": TEXT, "categoryGroup": TEXT}]},
}
