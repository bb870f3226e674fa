"""Names of metrics as a controller's source puts them together."""

from __future__ import annotations

from pathlib import Path

from karpstack.generators import metric_names


def test_names_are_put_together_as_prometheus_does(tmp_path: Path) -> None:
    (tmp_path / "metrics.go").write_text(
        """package x
const queueSubsystem = "queue"
var a = prometheus.CounterOpts{
	Namespace: metrics.Namespace,
	Subsystem: queueSubsystem,
	Name:      "read_total",
}
var b = prometheus.GaugeOpts{
	Namespace: Namespace,
	Name:      "depth",
}
var c = prometheus.GaugeOpts{
	Namespace: metrics.Namespace,
	Subsystem: given,
	Name:      "not_known_before_it_runs",
}
"""
    )
    (tmp_path / "metrics_test.go").write_text('prometheus.GaugeOpts{\n Namespace: Namespace,\n Name: "test",\n}')
    assert metric_names.metrics(tmp_path) == {"karpenter_depth": "gauge", "karpenter_queue_read_total": "counter"}
