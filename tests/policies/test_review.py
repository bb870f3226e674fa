"""The review: what it makes of a preview, and that its documents say it, whole and harmless."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_resources import STACKS
from jsonschema import Draft7Validator
from markdown_it import MarkdownIt
from reviewing import (
    RECORDED,
    ROOT,
    RULES,
    UNKNOWN,
    event,
    preview,
    recorded_review,
    review,
    step,
    urn,
    violation,
)
from rules import tokens
from rules.exceptions import Granted
from rules.values import readable

from karpstack.review import command, configuration, markdown, page, sarif, wording
from karpstack.review.changes import readable as in_words
from karpstack.review.engine import EngineError, read_digest, read_log
from karpstack.review.model import Review
from karpstack.review.preview import recorded
from karpstack.text.markdown import LONGEST
from tests.html_page import Page
from tests.steering import STEERING

HERE = Path(__file__).resolve().parent
TABLE: dict[str, Any] = yaml.safe_load((HERE / "review.yaml").read_text())
POOL = urn(tokens.NODE_POOL, "pool")
#: How the engine says that a policy could not be run.
NOT_RUN = "<{{%fg 13%}}>can't run policy '{}' from policy pack 'karpstack@v0.1.0' during preview: {}<{{%reset%}}>\n"
#: What the engine writes where it can't replace a secret by text.
CIPHERTEXT = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "hunter2"}
NASTY = "\x1b[31m\u202e a|b <script>alert(1)</script> `c` @team #12 [x](http://evil.example) \n---\n **d** &amp; \\"


def node_pool(name: str = "pool", *requirements: Any, **spec: Any) -> dict[str, Any]:
    wanted = requirements or ({"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},)
    template = {"spec": {"requirements": list(wanted), "nodeClassRef": {"group": "karpenter.k8s.aws"}}}
    inputs = {"metadata": {"name": name}, "spec": {"limits": {"cpu": 10}, "template": template, **spec}}
    return step(tokens.NODE_POOL, name, inputs)


def nasty() -> Review:
    """A review in which everything that others wrote is hostile."""
    bad = urn(tokens.QUEUE, NASTY)
    return review(
        preview(
            node_pool(NASTY),
            step(tokens.QUEUE, NASTY, {}, "delete") | {"oldState": {"type": tokens.QUEUE, "custom": True}},
            step(tokens.IAM_ROLE, NASTY, {"name": NASTY, "assumeRolePolicy": NASTY, "managedPolicyArns": [NASTY]}),
            events=[
                violation("queue-encrypted", NASTY, bad),
                event(policyName=NASTY, message=NASTY, resourceUrn=bad, enforcementLevel="advisory"),
            ],
            code=1,
        ),
        stack=NASTY,
    )


# The engine's words


@pytest.mark.parametrize("row", TABLE["rows"].values(), ids=TABLE["rows"])
def test_what_the_engine_says_becomes_findings(row: dict[str, Any], tmp_path: Path) -> None:
    stack_file = tmp_path / "Pulumi.test.yaml"
    stack_file.write_text(row.get("stackFile", TABLE["stackFile"]))
    resources = {"vpc": step(tokens.VPC, "vpc", {}), "pool": node_pool(), "role": step(tokens.IAM_ROLE, "role", {})}
    queue = urn(tokens.QUEUE, "queue")
    target = step(tokens.EVENT_TARGET, "target", {"arn": UNKNOWN}, comes_from={"arn": [queue]})
    about = {name: one["urn"] for name, one in resources.items()}
    about |= {"": "", "stack": urn(tokens.STACK, "karpstack-test")}
    events = [violation(rule, said, about[of], level) for rule, said, of, level in row.get("reports", ())]
    events += [
        event(policyName=rule, message=NOT_RUN.format(rule, why), resourceUrn=about[of], enforcementLevel="advisory")
        for rule, why, of in row.get("notRun", ())
    ]
    errors = [{"severity": "error", "message": said} for said in row.get("errors", ())]
    code = row.get("code", 0)
    said = preview(*resources.values(), target, events=events, code=code, diagnostics=errors)
    found = review(said, configuration=stack_file)
    findings = [
        [one.code, one.level, one.mandatory, one.subject, one.what, one.line, one.key] for one in found.findings
    ]
    assert findings == row.get("findings", [])
    assert [one.why for one in found.not_judged] == row.get("notJudged", [])
    assert list(found.failures) == row.get("failures", [])
    assert (found.verdict, found.pack_version) == (row.get("verdict", "refused"), "0.1.0" if events else "")
    assert (found.stack, found.project) == ("test", "karpstack")
    assert wording.headline(found) == row.get("headline", wording.headline(found))


def test_exceptions_in_force_are_told_with_what_they_excused() -> None:
    shorter = Granted("node-image-pinned", "urn:*::x", "a reason: with a colon", date(2099, 12, 31))
    # Its report begins like the other's, and an escape must not be what tells them apart.
    longer = replace(shorter, reason=f"{shorter.reason}. Excused: until 2100-01-01: or so\x1b")
    reports = [
        violation("exceptions-in-force", readable(granted.report_text(said)), POOL if said else "", "advisory")
        for granted in (shorter, longer)
        for said in ("alias is\nal2023@latest.", None)
    ]
    found = review(preview(events=reports), settings=excepting(shorter, longer))
    assert not found.findings
    assert [
        (one.finding.code, one.pattern, one.reason, one.until, one.finding.subject, one.finding.what)
        for one in found.excused
    ] == [
        ("node-image-pinned", "urn:*::x", readable(granted.reason), "2099-12-31", resource, said)
        for granted in (shorter, longer)
        for resource, said in (("pool", "alias is\nal2023@latest."), ("", ""))
    ]


def test_an_exception_that_is_not_in_the_configuration_is_told_as_it_came() -> None:
    granted = Granted("node-image-pinned", "x", "because", date(2099, 12, 31))
    report = violation("exceptions-in-force", granted.report_text("latest"), POOL, "advisory")
    unread: list[Mapping[str, Any]] = [{}, {"exceptions": "advisory"}, {"exceptions": {"granted": [{"rule": 1}]}}]
    for settings in unread:
        found = review(preview(events=[report]), settings=settings)
        assert [one.what for one in found.findings] == [granted.report_text("latest")]
        assert not found.excused


def excepting(*granted: Granted) -> dict[str, Any]:
    """The pack's configuration with exceptions."""
    return {"exceptions": {"granted": [asdict(one) | {"until": one.until.isoformat()} for one in granted]}}


def test_a_preview_that_failed_says_why(tmp_path: Path) -> None:
    last_word = {"severity": "error", "message": "error: preview failed\n"}
    assert review(preview(diagnostics=[last_word], code=255)).verdict == "failed"
    early = recorded(255, "", [], "error: no stack named 'x' found")
    assert early.failures == ("error: no stack named 'x' found",)
    assert review(early).verdict == "failed"
    assert recorded(7, "", []).failures == ("pulumi preview ended with the exit code 7 and said nothing",)
    command.write(review(early), tmp_path)
    assert "no stack named" in (tmp_path / "review.html").read_text()
    with pytest.raises(EngineError, match="no digest"):
        recorded(0, "words", [])


@pytest.mark.parametrize("text", ["[]", "{", '{"steps": 1}'])
def test_words_that_are_no_digest_are_refused(text: str) -> None:
    with pytest.raises(EngineError, match="no digest of a preview"):
        read_digest(text)


@pytest.mark.parametrize(
    "line",
    [
        "words",
        "[]",
        '{"summaryEvent": 3}',
        '{"summaryEvent": {"PolicyPacks": ["karpstack"]}}',
        '{"resOutputsEvent": {"metadata": {}}}',
        '{"resOutputsEvent": {"metadata": {"urn": 3}}}',
    ],
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(EngineError, match="line 2 of the engine's event log"):
        read_log(["{}", line])


@pytest.mark.parametrize(
    ("name", "mine"),
    [
        ("review.md", "# My year, a review of it\n"),
        ("review.html", "<!doctype html>\n<title>My year</title><title>Review of it"),
        ("review.sarif", '{"$schema": "x", "runs": [{"tool": {"driver": {"name": "mine"}}}]}'),
    ],
)
def test_only_the_documents_of_a_review_are_written_over(name: str, mine: str, tmp_path: Path) -> None:
    command.write(review(preview()), tmp_path)
    command.check_output(tmp_path)
    (tmp_path / name).write_text(mine)
    with pytest.raises(ValueError, match=f"{name}: is no review, so the existing file would be lost"):
        command.check_output(tmp_path)


# What it makes of them


def test_changes_are_counted_by_type_and_named() -> None:
    role, queue = tokens.IAM_ROLE, tokens.QUEUE
    replaced = step(queue, "queue", {}, "replace") | {
        "replaceReasons": ["name"],
        "detailedDiff": {"name": {}, "tags.a": {}},
    }
    found = review(
        preview(
            step("pulumi:providers:aws", "default", {}),
            step(role, "one", {}),
            step(role, "two", {}),
            step(queue, "queue", {}, "create-replacement"),
            replaced,
            step(queue, "queue", {}, "delete-replaced"),
            {"op": "delete", "urn": urn(role, "old"), "oldState": {"type": role, "custom": True}},
            step(role, "same", {}, "same"),
            {"op": "create", "urn": urn("karpstack:eks:X", "x"), "newState": {"type": "karpstack:eks:X"}},
        )
    )
    assert [(one.operation, one.type, one.number) for one in found.counts] == [
        ("delete", "AWS iam Role", 1),
        ("replace", "AWS sqs Queue", 1),
        ("create", "AWS iam Role", 2),
        ("same", "AWS iam Role", 1),
    ]
    assert [(one.operation, one.name) for one in found.changes] == [("delete", "old"), ("replace", "queue")]
    assert found.beside == 1
    assert "1 unchanged; beside them 1 component or provider, which Pulumi counts too." in wording.summary(found)
    assert in_words(tokens.NODE_POOL) == "Kubernetes NodePool"
    assert in_words(tokens.AKS_CLUSTER) == "Azure containerservice ManagedCluster"


def test_a_pool_of_a_third_cloud_is_not_known_instead_of_the_firsts() -> None:
    template = {"spec": {"nodeClassRef": {"group": "karpenter.example.com"}}}
    found = review(preview(node_pool(template=template)))
    assert "nodeClassRef.group is karpenter.example.com" in found.pools[0].unknown
    assert (found.pools[0].types, found.cost.complete) == ((), False)


def test_a_pool_has_its_types_and_its_ceiling() -> None:
    dear = {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m5"]}
    found = review(preview(node_pool(), node_pool("family", dear), node_pool("none", limits={})))
    one, family, boundless = found.pools
    assert [(offer.name, offer.usd) for offer in one.types] == [("m5.large", 0.096)]
    assert one.usd == pytest.approx(0.48)
    assert {offer.name for offer in family.types} == {"m5.large", "m5.xlarge", "m5.2xlarge"}, "of at most 10 cores"
    assert [offer.usd for offer in family.types] == sorted(offer.usd or 0 for offer in family.types)
    assert boundless.unbounded
    assert found.cost.usd == pytest.approx((one.usd or 0) + (family.usd or 0))
    assert not found.cost.complete
    assert "and nothing bounds none" in page.render(found)


def test_images_that_are_assumed_are_said_in_the_first_lines() -> None:
    cluster = step(tokens.CLUSTER, "cluster", {"version": "1.36"})
    terms = [{"alias": "bottlerocket@v9.0.0"}, {"alias": "al2023@latest"}]
    found = review(preview(cluster, step(tokens.EC2_NODE_CLASS, "default", {"spec": {"amiSelectorTerms": terms}})))
    assert wording.summary(found).endswith("the facts do not know it: the image bottlerocket@v9.0.0.")
    unknown = step(tokens.EC2_NODE_CLASS, "default", {"spec": UNKNOWN})
    assert not review(preview(cluster, unknown)).assumed


def test_a_pool_is_not_guessed() -> None:
    unknown = {"key": "kubernetes.io/arch", "operator": "In", "values": UNKNOWN}
    secret = {"key": "kubernetes.io/arch", "operator": "In", "values": ["[secret]"]}
    found = review(preview(node_pool("later", unknown), node_pool("secret", secret)))
    assert all("is known only once it is created" in pool.unknown for pool in found.pools)
    assert not any(pool.types for pool in found.pools)
    nowhere = review(preview(node_pool(), config={"aws:region": "nowhere-1"}))
    assert "facts/aws.json" in nowhere.pools[0].unknown


def test_the_region_is_the_clusters() -> None:
    steps = [step(tokens.CLUSTER, "c", {"region": "eu-west-1"}), node_pool()]
    steps[0]["newState"]["provider"] = f"{urn('pulumi:providers:aws', 'default_7_0_0')}::id"
    assert "eu-west-1" in review(preview(*steps)).pools[0].unknown


def test_pools_that_aks_brings_are_named() -> None:
    profile = {"mode": "Auto", "defaultNodePools": "Auto"}
    found = review(preview(step(tokens.AKS_CLUSTER, "aks", {"nodeProvisioningProfile": profile})))
    assert "default and system-surge" in found.cost.notes[0]
    assert "default and system-surge" in page.render(found)
    own = profile | {"defaultNodePools": "None"}
    assert not review(preview(step(tokens.AKS_CLUSTER, "aks", {"nodeProvisioningProfile": own}))).cost.notes


def test_more_than_the_policies_allow_is_said() -> None:
    settings = {"stack-cost-ceiling": {"usdPerHour": 0.1}, "node-pool-cost-ceiling": "disabled"}
    found = review(preview(node_pool()), settings=settings)
    assert found.cost.exceeded
    assert found.pools[0].allowed is None
    for text in (page.render(found), markdown.render(found)):
        assert "0.4800 USD/h, more than the 0.1000 that the policies allow" in text
    assert not review(preview(node_pool())).cost.exceeded


# Real previews


def test_eks_before_there_is_anything() -> None:
    """The document that people review: the cluster does not exist, and the most of it is known all the same."""
    found = recorded_review("eks-new", "eks")
    assert (found.verdict, found.stack, found.project) == ("passed", "eks", "karpstack")
    assert [(name, number) for name, number in wording.totals(found)] == [("create", 73)]
    assert not found.findings
    assert {(one.finding.code, one.finding.key) for one in found.excused} == {
        ("node-image-pinned", "karpstack:nodeClasses.default"),
        ("node-image-pinned", "karpstack:nodeClasses.bottlerocket"),
    }
    (pool,) = found.pools
    assert pool.place.key == "karpstack:nodePools.default"
    assert len(pool.types) > 500
    assert 50 < (pool.usd or 0) < 250
    controller = "role karpstack-eks-karpenter-controller"
    assert [
        one.who for one in found.entries if one.identity == controller and one.who.startswith("service account")
    ] == ["service account kube-system/karpenter of the cluster karpstack-eks"]
    passing = [one for one in found.permissions if "iam:PassRole" in one.actions]
    assert [(one.identity, one.on) for one in passing] == [
        (controller, ("arn:aws:iam::123456789012:role/karpstack-eks-karpenter-nodes",))
    ]
    # What can't be known is said, with what it waits for.
    (queue,) = [one for one in found.permissions if one.source == "eks-interruption-queue-policy"]
    assert queue.unknown == "known once eks-interruption-queue exists"
    assert ("queue-policy-closed", "policy is known once eks-interruption-queue exists") in {
        (one.rule, one.why) for one in found.not_judged
    }


def test_aks_with_node_auto_provisioning_is_refused_without_its_exception() -> None:
    """Recorded with production.json, which excuses nothing; a violated policy is no failure of the preview."""
    found = recorded_review("aks-nap-new", "aks-nap")
    assert (found.verdict, found.failures) == ("refused", ())
    ((one),) = found.findings
    assert (one.code, one.mandatory, one.subject) == ("aks-logs", True, "aks-cluster-control-plane")
    assert one.key == "karpstack:cluster"
    assert "default and system-surge" in found.cost.notes[0]
    assert [pool.place.key for pool in found.pools] == ["karpstack:nodePools.batch"]


def test_aks_with_its_own_karpenter() -> None:
    found = recorded_review("aks-self-hosted-new", "aks-self-hosted")
    assert (found.verdict, [one.finding.code for one in found.excused]) == ("passed", ["aks-logs"])
    (tie,) = found.entries
    assert (tie.identity, tie.who) == ("identity karpstack-aks-karpenter", "service account kube-system/karpenter-sa")
    assert tie.when[0] == "issuer of aks-cluster-control-plane"
    controller = {one.actions[0]: one.on[0] for one in found.permissions if one.identity == tie.identity}
    assert set(controller) == {
        "role Virtual Machine Contributor",
        "role Network Contributor",
        "role Managed Identity Operator",
    }
    assert controller["role Virtual Machine Contributor"].endswith("/resourceGroups/karpstack-aks-nodes")


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json.gz")), ids=lambda path: path.name.split(".")[0])
def test_documents_of_real_previews_are_whole(path: Path) -> None:
    name = path.name.split(".")[0]
    found = recorded_review(name, name.removesuffix("-new"))
    html = page.render(found)
    assert not re.search(
        r"\b(None|True|False|nan|Undefined)\b", re.sub(r"defaultNodePools|<style>.*?</style>", "", html)
    )
    assert Page(html).text
    assert all(len(set(rows)) == 1 for rows in tables(markdown.render(found)))
    assert len(markdown.render(found)) < LONGEST
    keeps_to_the_format(sarif.document(found))


# The documents


def test_secrets_are_never_shown() -> None:
    found = review(
        preview(
            step(
                tokens.IAM_ROLE,
                "role",
                {"name": CIPHERTEXT, "managedPolicyArns": [CIPHERTEXT], "assumeRolePolicy": CIPHERTEXT},
            ),
            step(tokens.IAM_POLICY, "policy", {"policy": {"Statement": [{"Effect": "Allow", "Action": CIPHERTEXT}]}}),
            step(tokens.AZURE_ROLE_ASSIGNMENT, "r", {"principalId": CIPHERTEXT, "scope": CIPHERTEXT}),
        )
    )
    for text in (page.render(found), markdown.render(found), sarif.render(found)):
        assert "hunter2" not in text
        assert "ciphertext" not in text
    assert "[secret]" in Page(page.render(found)).text


def test_what_is_said_of_many_resources_is_said_once() -> None:
    many = [violation("tags-required", "It lacks owner.", urn(tokens.VPC, f"vpc-{number}")) for number in range(29)]
    other = violation("tags-required", "It lacks team.", urn(tokens.VPC, "vpc-0"))
    found = review(preview(events=[*many, other]))
    assert len(found.findings) == 30
    assert "30 mandatory and 0 advisory findings, which say 2 different things." in wording.summary(found)
    for text in (page.render(found), markdown.render(found)):
        assert text.count("It lacks owner.") == text.count("It lacks team.") == 1
        assert "vpc-28" in text
    assert "<summary>29 resources</summary>" in markdown.render(found)
    assert len(sarif.document(found)["runs"][0]["results"]) == 30  # code scanning wants each


def test_the_page_needs_nothing_but_itself() -> None:
    found = Page(page.render(review(preview(node_pool(), events=[violation("node-pool-limits", "x", POOL)]))))
    for name in ("src", "action", "data", "poster", "srcset"):
        assert not found.values(name)
    identifiers = found.values("id")
    for value in found.values("href"):
        assert value == "data:," or value.startswith("https://") or value[1:] in identifiers, value
    assert not {"script", "iframe", "img", "object", "embed", "base"} & {tag for tag, _ in found.elements}
    (policy,) = [value for value in found.values("content") if "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    style = (ROOT / "karpstack" / "review" / "templates" / "style.css").read_text()
    assert not re.search(r"@import|url\(", style)
    assert {"prefers-color-scheme: dark", "max-width: 560px", "@media print"} <= {
        part for part in ("prefers-color-scheme: dark", "max-width: 560px", "@media print") if part in style
    }


def test_the_page_says_what_others_wrote_as_text() -> None:
    html = page.render(nasty())
    assert "script" not in {tag for tag, _ in Page(html).elements}
    assert " ".join(readable(NASTY).split()) in Page(html).text
    other = review(preview(events=[event(policyName="x", message="y", enforcementLevel="mandatory")], code=1))
    linked = tuple(replace(one, link="javascript:alert(1)") for one in other.findings)
    hostile = other.model_copy(update={"findings": linked})
    assert not [value for value in Page(page.render(hostile)).values("href") if "javascript" in value]
    assert "href" not in markdown.render(hostile)


def tables(text: str) -> Iterator[list[int]]:
    """The number of cells of each row, by table, as a Markdown parser sees them."""
    rows: list[int] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        if token.type == "table_open":
            rows = []
        elif token.type == "tr_open":
            rows.append(0)
        elif token.type in ("td_open", "th_open"):
            rows[-1] += 1
        elif token.type == "table_close":
            yield rows


def test_nothing_in_the_documents_can_move_a_terminal_or_turn_a_line_round(tmp_path: Path) -> None:
    command.write(nasty(), tmp_path)
    for path in tmp_path.iterdir():
        said = path.read_text()
        assert "x1b" in said, path.name
        assert all(character.isprintable() or character == "\n" for character in said), path.name


def test_a_text_of_any_length_is_cut() -> None:
    long = "x" * 1_000_000
    found = review(preview(node_pool(), events=[violation("node-pool-limits", long, POOL)], code=1), stack=long)
    assert len(sarif.render(found)) < 200_000
    assert len(page.render(found)) < 200_000


def test_tables_of_the_comment_keep_their_columns() -> None:
    text = markdown.render(nasty())
    found = list(tables(text))
    assert len(found) >= 5
    for rows in found:
        assert len(set(rows)) == 1
        assert len(rows) > 1
    for line in (line for line in text.splitlines() if line.startswith("|")):
        assert line.count("|") == len(line.split("|")) - 1
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    read = Page(html)
    assert {tag for tag, _ in read.elements} <= {
        "h2",
        "h3",
        "h4",
        "p",
        "code",
        "strong",
        "blockquote",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "a",
        "br",
        "b",
        "i",
    }
    assert set(read.values("href")) <= {rule.url for rule in RULES}
    assert not re.search(r"(^|[^\w])@\w", text), "somebody would be notified"
    assert "".join(readable(NASTY).split()) in read.text.replace(" ", ""), (
        "comments stand in what would be a mention or a link"
    )


def test_the_comment_fits() -> None:
    lines = [
        violation("queue-encrypted", f"{'long ' * 200}{index}", urn(tokens.QUEUE, f"q{index}")) for index in range(50)
    ]
    roles = [
        step(tokens.IAM_ROLE, f"r{index}", {"name": f"r{index}", "managedPolicyArns": ["x" * 500] * 9})
        for index in range(50)
    ]
    text = markdown.render(review(preview(*roles, events=lines, code=1)))
    assert len(text) < 65_536
    assert text.count("<details>") == text.count("</details>")
    assert text.rstrip().endswith("**Cut here: review.html has the rest.**")


def test_code_scanning_gets_findings_exceptions_and_what_was_not_judged() -> None:
    not_run = "can't run policy 'iam-trust-bound' from policy pack 'karpstack@v0.1.0' during preview: no"
    granted = Granted("queue-encrypted", "q*", "because", date(2099, 12, 31))
    said = preview(
        events=[
            violation("node-pool-limits", "boundless", POOL),
            violation("node-imdsv2", "old", "", "advisory"),
            violation("exceptions-in-force", granted.report_text("plain"), urn(tokens.QUEUE, "q"), "advisory"),
            event(policyName="iam-trust-bound", message=not_run, enforcementLevel="advisory"),
            event(policyName="another-packs", message="x", severity="low", enforcementLevel="advisory"),
        ],
        code=1,
    )
    (run,) = sarif.document(review(said, settings=excepting(granted)))["runs"]
    by_rule = {one["ruleId"]: one for one in run["results"]}
    assert {name: one["level"] for name, one in by_rule.items()} == {
        "node-pool-limits": "error",
        "node-imdsv2": "warning",
        "another-packs": "note",
        "queue-encrypted": "note",
    }
    assert by_rule["queue-encrypted"]["suppressions"][0]["justification"] == "because (until 2099-12-31)"
    (place,) = by_rule["node-pool-limits"]["locations"]
    assert place["logicalLocations"][0]["fullyQualifiedName"] == POOL
    assert place["physicalLocation"]["region"] == {"startLine": 1}
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["associatedRule"]["id"] == "iam-trust-bound"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.name for rule in RULES]
    for one in run["results"]:
        if "ruleIndex" in one:
            assert rules[one["ruleIndex"]]["id"] == one["ruleId"]
    assert {rule["properties"]["security-severity"] for rule in rules} == {"9.5", "8.0", "5.5", "2.0"}


def test_fingerprints_are_of_the_finding_and_not_of_its_line(tmp_path: Path) -> None:
    def fingerprint(content: str, found: str = "x") -> str:
        configuration = tmp_path / "Pulumi.test.yaml"
        configuration.write_text(content)
        said = preview(node_pool(), events=[violation("node-pool-limits", found, POOL)])
        (one,) = sarif.document(review(said, configuration=configuration))["runs"][0]["results"]
        return str(one["partialFingerprints"])

    first = fingerprint("config: {'karpstack:nodePools': {pool: {}}}")
    assert first == fingerprint("\n\n\nconfig: {'karpstack:nodePools': {pool: {}}}")
    assert first != fingerprint("", "y")


@pytest.mark.parametrize("made", [nasty, lambda: review(recorded(2, "", [], "x"))], ids=["hostile", "failed"])
def test_sarif_keeps_to_its_format(made: Any) -> None:
    keeps_to_the_format(sarif.document(made()))


def keeps_to_the_format(content: dict[str, Any]) -> None:
    """Validate against what the standard says of the parts that are written here (sarif_parts.json says which)."""
    schema = json.loads((HERE / "sarif_parts.json").read_text())
    Draft7Validator.check_schema(schema)
    errors = [f"{one.json_path}: {one.message}" for one in Draft7Validator(schema).iter_errors(content)]
    assert not errors


# The command


def granted(**changes: object) -> str:
    """A configuration with one exception."""
    entry = {"rule": "node-imdsv2", "resource": "*", "reason": "to be seen", "until": "2999-12-31"}
    return json.dumps({"exceptions": {"granted": [entry | changes]}})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "can't be read"),
        ("{", "can't be read"),
        pytest.param("[" * 100_000, "can't be read", id="too deep"),
        pytest.param(" " * 1_100_000 + "{}", "more than 1 MiB", id="too long"),
        ("[]", "is no object"),
        ('{"node-imdsv2": "mandatory", "node-imdsv2": "disabled"}', "node-imdsv2"),
        ('{"node-pool-cost-ceiling": {"usdPerHour": NaN}}', "NaN"),
        ('{"node-pool-limit": "advisory"}', "node-pool-limit is no rule of this pack"),
        ('{"node-pool-limits": "fatal"}', 'node-pool-limits is "fatal", not one of advisory, mandatory'),
        ('{"node-pool-limits": 7}', "node-pool-limits is 7, not one of advisory, mandatory"),
        ('{"node-pool-cost-ceiling": {"usdPerHour": []}}', "node-pool-cost-ceiling.usdPerHour is [], not number"),
        ('{"node-pool-cost-ceiling": {"usdPerHour": true}}', "node-pool-cost-ceiling.usdPerHour is true, not number"),
        (
            '{"node-pool-cost-ceiling": {"usd": 7}}',
            "usd is no setting of this rule, which has enforcementLevel, usdPer",
        ),
        (granted(rule="no-such-rule"), "one for 'no-such-rule', which is no rule of this pack"),
        (granted(until="2027-02-30"), "until '2027-02-30', which is no day"),
        ('{"exceptions": {"granted": [{"rule": "node-imdsv2"}]}}', "an entry that is not {rule, resource, reason"),
        (granted(reason=None), "an entry that is not {rule, resource, reason"),
        (granted(resource=5), "an entry that is not {rule, resource, reason"),
        ('{"exceptions": {"granted": [7]}}', "an entry that is not {rule, resource, reason"),
        ('{"\\u001b[31m\\ud800": {}}', "\\x1b[31m\\ud800 is no rule of this pack"),
    ],
)
def test_a_bad_configuration_of_the_pack_is_refused(
    content: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = tmp_path / "pack.json"
    if content is not None:
        configuration.write_text(content)
    assert command.review("x", policy_pack_config=str(configuration), output=tmp_path) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("error: --policy-pack-config ")
    assert "nothing" in said
    assert command.review("x", policy_pack_config=str(configuration), only_configuration=True) == 2
    good = str(ROOT / "policies" / "production.json")
    assert command.review("x", policy_pack_config=good, only_configuration=True) == 0


def test_a_stack_has_one_configuration_of_the_pack(tmp_path: Path) -> None:
    assert configuration.of_stack(tmp_path, "eks") == tmp_path / "policies" / "eks.json"
    assert configuration.of_stack(tmp_path, "organisation/project/eks") == tmp_path / "policies" / "eks.json"


def test_the_command_says_which_configuration_judged() -> None:
    made = review(preview(node_pool()), stack="prod")
    assert wording.judge(made) == "policies/production.json"
    baseline = made.model_copy(update={"pack_configuration": wording.BASELINE})
    assert wording.judge(baseline) == "the baseline of the policy pack"
    own = configuration.of_stack(ROOT, "prod")
    assert wording.judge(baseline, own) == "the baseline of the policy pack, for there is no policies/prod.json"


@pytest.mark.parametrize("path", [ROOT / "policies" / f"{name}.json" for name in ("production", *STACKS)])
def test_the_configurations_beside_the_pack_are_taken(path: Path) -> None:
    assert configuration.read(path, RULES) == json.loads(path.read_text())


@pytest.mark.parametrize("text", STEERING, ids=ascii)
def test_the_pack_shows_text_as_all_else_does(text: str) -> None:
    """It is published alone, with a function of its own."""
    assert readable(f"before {text} after").isprintable()
