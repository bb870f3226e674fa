"""One finding in each form that a reader may want; what others wrote steers none of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

import pytest

from karpstack.karpenter.findings import Finding
from karpstack.text import findings

FINDING: Final = Finding(
    "zone-unknown",
    "karpstack:network.zones",
    '"a<b>\x1b"',
    "pulumi up stops | at the subnets",
    "take another",
    what="the zone a<b>\x1b is unknown",
    file="Pulumi.eks.yaml",
    line=7,
    link="https://example.org/zones",
    told_by="ec2:DescribeAvailabilityZones",
)
FORMS: Final[dict[str, tuple[Callable[[], str], tuple[str, ...]]]] = {
    "terminal": (lambda: findings.text([FINDING]), ("error[zone-unknown] Pulumi.eks.yaml:7", "    fix: take another")),
    "table": (
        lambda: findings.table("Before", {"zones": [FINDING], "names": []}),
        ("ERROR", "the zone a<b>", "No findings: names"),
    ),
    "Markdown": (
        lambda: findings.as_markdown([FINDING], "all.json"),
        (
            '<a href="https://example.org/zones"><code>zone-unknown</code></a>',
            "a&#60;b&#62;",
            "stops &#124; at",
            "<br>fix: take another",
        ),
    ),
    "HTML": (
        lambda: findings.as_html([FINDING]),
        ('<a href="https://example.org/zones"><code>zone-unknown</code></a>', "a&lt;b&gt;", "<br>fix: take another"),
    ),
    "JSON": (
        lambda: json.dumps(findings.as_data(FINDING)),
        ('"where": {"file": "Pulumi.eks.yaml", "line": 7, "key": "karpstack:network.zones"}', '"code": "zone-unknown"'),
    ),
    "SARIF": (
        lambda: findings.as_sarif([FINDING], "karpstack"),
        ('"ruleId": "zone-unknown"', '"startLine": 7', '"level": "error"', "2.1.0"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_finding_and_nothing_that_acts(form: str) -> None:
    render, parts = FORMS[form]
    said = render()
    assert [part for part in parts if part not in said] == []
    assert "\x1b" not in said


def test_key_and_value_stand_where_no_words_do() -> None:
    bare = Finding("code", "karpstack:tags", "5", "is no object", "")
    assert str(bare) == "karpstack:tags = 5\n    is no object"
    assert findings.result(bare) == {
        "ruleId": "code",
        "level": "error",
        "message": {"text": f"{bare.message}\nis no object"},
    }
