"""rules/callbacks.py: pods that the API server calls, good inputs, one mutation per clause, unknown values."""

from __future__ import annotations

import pytest
from judging import UNKNOWN, Case, Resource
from rules import tokens
from rules.callbacks import API_SERVER_REACHES_PODS as REACHES

HOST = ("spec", "template", "spec", "hostNetwork")
EKS = Resource(tokens.CLUSTER, {"name": "demo"}, "cluster")
CILIUM = Resource(tokens.HELM_RELEASE, {"chart": "cilium", "values": {"routingMode": "tunnel"}}, "cilium")
CALLED = {"name": "webhook", "namespace": "platform"}
WEBHOOK = Resource(
    tokens.VALIDATING_WEBHOOKS,
    {"webhooks": [{"clientConfig": {"service": CALLED}}, {"clientConfig": {"url": "https://elsewhere"}}]},
    "checks",
)
API = Resource(tokens.API_SERVICE, {"spec": {"service": CALLED, "group": "metrics.k8s.io"}}, "api")
SERVICE = Resource(tokens.SERVICE, {"metadata": CALLED, "spec": {"selector": {"app": "webhook"}}}, "service")
PODS = Resource(
    tokens.DEPLOYMENT,
    {
        "metadata": {"name": "server", "namespace": "platform"},
        "spec": {"template": {"metadata": {"labels": {"app": "webhook", "v": "1"}}, "spec": {"hostNetwork": True}}},
    },
    "server",
)
IN_THE_OVERLAY = PODS.without(*HOST)
FOUND = "Service platform/webhook, and the pods of server behind it are not on the host's network"


def chart(name: str, **values: object) -> Resource:
    return Resource(tokens.HELM_RELEASE, {"chart": name, "values": values}, name)


def stack(*more: Resource) -> list[Resource]:
    return [EKS, CILIUM, *more]


CASES = [
    Case(name="on the host's network", rule=REACHES, given=stack(WEBHOOK, API, SERVICE, PODS)),
    Case(name="nothing is called", rule=REACHES, given=stack(SERVICE, IN_THE_OVERLAY)),
    Case(
        name="pods of a webhook in the overlay",
        rule=REACHES,
        given=stack(WEBHOOK, SERVICE, IN_THE_OVERLAY),
        violations=(f"checks calls {FOUND}",),
    ),
    Case(
        name="of an aggregated API",
        rule=REACHES,
        given=stack(API, SERVICE, PODS.change(*HOST, to=False)),
        violations=(f"api calls {FOUND}",),
    ),
    Case(
        name="of a webhook that changes",
        rule=REACHES,
        given=stack(Resource(tokens.MUTATING_WEBHOOKS, WEBHOOK.properties, "changes"), SERVICE, IN_THE_OVERLAY),
        violations=(f"changes calls {FOUND}",),
    ),
    *(
        Case(
            name=f"of a {token.rpartition(':')[2]}",
            rule=REACHES,
            given=stack(API, SERVICE, Resource(token, IN_THE_OVERLAY.properties, "server")),
            violations=(f"api calls {FOUND}",),
        )
        for token in (tokens.DAEMON_SET, tokens.STATEFUL_SET)
    ),
    Case(
        name="a Service for two webhooks is named once",
        rule=REACHES,
        given=stack(WEBHOOK.change("webhooks", 1, to={"clientConfig": {"service": CALLED}}), SERVICE, IN_THE_OVERLAY),
        violations=(f"checks calls {FOUND}",),
    ),
    Case(
        name="no Service of the stack",
        rule=REACHES,
        given=stack(WEBHOOK, SERVICE.change("metadata", "namespace", to="other"), IN_THE_OVERLAY),
    ),
    Case(
        name="pods that it does not select",
        rule=REACHES,
        given=stack(WEBHOOK, SERVICE.change("spec", "selector", to={"app": "other"}), IN_THE_OVERLAY),
    ),
    Case(
        name="pods of another namespace",
        rule=REACHES,
        given=stack(WEBHOOK, SERVICE, IN_THE_OVERLAY.change("metadata", "namespace", to="other")),
    ),
    Case(name="no cluster of EKS", rule=REACHES, given=[CILIUM, WEBHOOK, SERVICE, IN_THE_OVERLAY]),
    Case(
        name="pods with addresses of the VPC",
        rule=REACHES,
        given=[EKS, CILIUM.change("values", "routingMode", to="native"), WEBHOOK, SERVICE, IN_THE_OVERLAY],
    ),
    Case(
        name="charts on the host's network",
        rule=REACHES,
        given=stack(
            chart("metrics-server", hostNetwork={"enabled": True}),
            chart("aws-load-balancer-controller", hostNetwork=True),
            chart("https://charts.example.com/cert-manager", webhook={"hostNetwork": "true"}),
        ),
    ),
    Case(
        name="charts in the overlay",
        rule=REACHES,
        given=stack(
            chart("metrics-server"),
            chart("aws-load-balancer-controller", hostNetwork=False),
            chart("cert-manager", webhook={}),
        ),
        violations=(
            "values.hostNetwork.enabled of metrics-server is not true",
            "values.hostNetwork of aws-load-balancer-controller is not true",
            "values.webhook.hostNetwork of cert-manager is not true",
        ),
    ),
    Case(
        name="unknown, and another chart is not",
        rule=REACHES,
        given=stack(chart("metrics-server", hostNetwork=UNKNOWN), chart("cert-manager")),
        violations=("values.webhook.hostNetwork of cert-manager",),
        unknown="metrics-server.values.hostNetwork",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case) -> None:
    case.check()
