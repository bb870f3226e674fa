"""The charts of what runs beside Karpenter are those that are named, and take what they are given."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from karpstack.components import versions
from karpstack.components.documents import addons
from karpstack.components.documents.load_balancer_policy import LOAD_BALANCER_POLICIES, LoadBalancerScope
from karpstack.rehearsal.aws.eks.addon_workloads import WORKLOADS
from karpstack.rehearsal.cluster import callbacks
from karpstack.rehearsal.cluster.charts import Chart, Charts
from karpstack.rehearsal.engines import EngineSet

METRICS = (versions.METRICS_SERVER_CHART, versions.METRICS_SERVER, versions.METRICS_SERVER_REPOSITORY)
BALANCERS = (
    versions.LOAD_BALANCER_CONTROLLER_CHART,
    versions.LOAD_BALANCER_CONTROLLER,
    versions.LOAD_BALANCER_CONTROLLER_REPOSITORY,
)
DRIVER = WORKLOADS["aws-ebs-csi-driver"].chart or ("none", "", "")


def chart(*named: str) -> Chart:
    return Charts(EngineSet.current()).find(*named)


@pytest.mark.parametrize("named", [METRICS, BALANCERS, DRIVER], ids=lambda named: named[0])
def test_each_is_of_the_version_that_it_is_named_by(named: tuple[str, str, str]) -> None:
    found = yaml.safe_load((chart(*named).folder / "Chart.yaml").read_text())
    assert (found["name"], found["version"]) == named[:2]


@pytest.mark.parametrize(
    ("named", "values"),
    [
        (METRICS, addons.metrics_server(replicas=2)),
        (
            BALANCERS,
            addons.load_balancer_controller(
                cluster_name="demo",
                region="us-east-1",
                vpc_id="vpc-1",
                service_account="x",
                replicas=2,
                isolated=False,
                tags={},
            ),
        ),
    ],
    ids=["metrics server", "load balancer controller"],
)
def test_charts_have_the_values(named: tuple[str, str, str], values: dict[str, Any]) -> None:
    found = chart(*named)
    assert Charts(EngineSet.current()).unknown_values(found, values) == []
    assert callbacks.may_have_callbacks(found.folder)


def test_the_driver_takes_its_configuration() -> None:
    schema = json.loads((chart(*DRIVER).folder / "values.schema.json").read_text())
    jsonschema.Draft201909Validator(schema).validate(addons.ebs_csi_driver(region="us-east-1", tags={"a": "b"}))


def test_the_load_balancer_controller_may_do_what_upstream_says_and_no_more() -> None:
    """All but Shield Advanced and WAF Classic, which are off."""
    upstream = json.loads((EngineSet.current().part("addons") / "iam_policy.json").read_text())
    scope = LoadBalancerScope(partition="aws", region="us-east-1", account_id="123456789012", cluster_name="demo")
    ours = [statement for make in LOAD_BALANCER_POLICIES.values() for statement in make(scope)["Statement"]]
    wanted = {action for statement in upstream["Statement"] for action in statement["Action"]}
    given = {action for statement in ours for action in statement["Action"]}
    assert given == {action for action in wanted if not action.startswith(("shield:", "waf-regional:"))}
