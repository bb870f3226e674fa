"""whatif.md and whatif.html: that they say the answer, whole and harmless."""

from __future__ import annotations

import html
import re

import pytest
from markdown_it import MarkdownIt

from karpstack.text.markdown import LONGEST
from karpstack.whatif import markdown, page, wording
from karpstack.whatif.accuracy import RealNode
from karpstack.whatif.answer import Answer
from karpstack.whatif.limits import Limits
from karpstack.whatif.phases import read
from tests.html_page import Page
from tests.unit.whatif.made import Made
from tests.unit.whatif.told import judged, told

NASTY = "<script>alert(1)</script> | @team #12 `x` **b** https://evil.example/\x1b[31m\u202e"
STORIES = [
    ("eks.drift", 1),
    ("eks.consolidation-policies", 3),
    ("eks.daemon-sets", 0),
    ("eks.budget-by-reason", 1),
    ("eks.eks-limit", 0),
]


def nasty() -> Answer:
    """Everything that others may write is hostile."""
    made = Made()
    made.pool()
    made.node("one", disrupted=150, deleting=160, gone=300, reason=NASTY)
    made.node("two")
    made.node("three", 155)
    made.pod("db-0", "one", workload="db", leaving=280)
    made.pod("web-1", None, 150, unschedulable=151)
    made.event(162, "Node", "ip-one", "FailedDraining", f"Failed to drain node, violates a PDB {NASTY}")
    made.event(170, "Node", "ip-two", "Unconsolidatable", NASTY)
    made.event(180, "Pod", "web-1", "FailedScheduling", NASTY)
    return judged(
        read(
            made.lines(
                settings={"waitFactor": 10, "pools": {"default": {"consolidateAfter": [NASTY, "3s"]}}},
                loaded={"pods": 2, "nodes": {"of": 3, "made": 2, "podsPlaced": 1, "leftOut": [NASTY]}},
                base_settled={"gaveUp": NASTY},
                change_begins={"candidate": NASTY},
                change_applied={"changes": [{"op": "update", "type": NASTY, "name": NASTY}]},
            )
        ),
        real=[RealNode(NASTY, NASTY, NASTY, "default", 0.1)],
    )


def shown(text: str) -> str:
    """What GitHub shows of Markdown, as HTML: tables and raw HTML are allowed there."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


@pytest.mark.parametrize(("story", "step"), STORIES)
def test_markdown_and_page_are_whole(story: str, step: int) -> None:
    answer = judged(told(story, step))
    html = shown(markdown.render(answer))
    assert Page(html).elements
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    assert rows
    tables = re.findall(r"<table>(.*?)</table>", html, flags=re.DOTALL)
    for found in tables:
        cells = {len(re.findall(r"<t[hd]", row)) for row in re.findall(r"<tr>(.*?)</tr>", found, flags=re.DOTALL)}
        assert len(cells) == 1
    assert Page(page.render(answer)).elements


def test_the_first_lines_are_the_answer() -> None:
    answer = judged(told("eks.consolidation-policies", 3, change_begins={"candidate": "tighter"}), Limits(max_nodes=5))
    text = markdown.render(answer)
    before_details = Page(shown(text.partition("<details>")[0])).text
    first = (
        "✅ No limit is exceeded: −$0.169 (−36 %) an hour; 2 pods move; not called safe: no real cluster was compared"  # noqa: RUF001
    )
    assert before_details.startswith(
        f"{first} What if tighter on eks: within its limits. $0.169 (36 %) an hour cheaper"
    )
    for said in ("2 of 6 nodes go", "no pod is unschedulable", "Not compared with any real cluster"):
        assert said in before_details
    assert len(text.partition("<details>")[0].splitlines()) < 20


def test_a_broken_limit_is_said_at_once() -> None:
    answer = judged(told("eks.consolidation-policies", 3), Limits(max_nodes=3))
    text = Page(shown(markdown.render(answer).partition("<details>")[0])).text
    assert text.startswith("❌ Do not merge yet: maxNodes is exceeded (4 nodes; at most 3 nodes) A what-if on eks")
    assert "maxNodes : at most 3 nodes, measured: 4 nodes" in text
    assert "1 limit of 6 exceeded" in Page(page.render(answer)).text


def test_a_refusal_is_said_and_nothing_else_is_claimed() -> None:
    made = Made()
    said = f"Updating (eks):\n\n    [mandatory] policy x: no limits {NASTY}\nResources: 3 unchanged"
    answer = judged(read(made.lines(change_applied={"refused": said}, change_settled={"missing": True})))
    assert "what of it was applied is not judged: [mandatory] policy x: no limits" in answer.sentence
    assert "Resources: 3" not in answer.sentence
    for text in (shown(markdown.render(answer)), page.render(answer)):
        found = Page(text).text
        assert "efused" in found
        assert "policy x" in found
        assert "Resources: 3 unchanged" in found
        assert "Blast radius" not in found
        assert "<script>alert" not in text


def test_the_zone_of_aks_that_is_none_is_explained() -> None:
    made = Made()
    made.pool()
    made.node("one", zone="0", disrupted=150, deleting=160, gone=200)
    answer = judged(read(made.lines()))
    for text in (shown(markdown.render(answer)), page.render(answer)):
        assert Page(text).text.count("0 (regional, in no availability zone)") == 2  # of the node, and of its group


def test_simulated_spot_is_marked_in_each_document() -> None:
    answer = judged(told("eks.eks-spot-default", 0))
    assert "of which spot, prices simulated" in markdown.render(answer)
    assert "simulated spot prices" in answer.sentence
    assert 'class="simulated"' in page.render(answer)
    plain = judged(told("eks.drift", 1))
    assert "simulated" not in markdown.render(plain)


def test_what_was_shortened_is_said() -> None:
    settings = {
        "waitFactor": 10,
        "pools": {"default": {"consolidateAfter": ["5m", "30s"]}, "same": {"consolidateAfter": ["2m", "120s"]}},
    }
    answer = judged(told("eks.drift", 1, settings=settings))
    for text in (shown(markdown.render(answer)), page.render(answer)):
        found = Page(text).text
        assert "Waits that NodePools ask for were divided by 10." in found
        assert "NodePool default: consolidateAfter was 30s in the rehearsal, the stack has 5m." in found
        assert "NodePool same" not in found


def test_what_others_wrote_does_nothing() -> None:
    answer = nasty()
    text = markdown.render(answer)
    assert "<script>" not in text
    assert "@team" not in re.sub(r"<!-- -->", "", text) or "@<!-- -->team" in text
    html = shown(text)
    assert "href" not in html
    assert "<script>" not in html
    whole = page.render(answer)
    assert "<script>" not in whole
    assert "\x1b" not in whole
    assert "\u202e" not in whole
    assert Page(whole).elements


def test_nodes_that_stay_for_pods_of_other_names_are_together() -> None:
    made = Made()
    made.pool()
    words = 'Pod has "karpenter.sh/do-not-disrupt" annotation (Pod=data/ledger-{})'
    for index in range(3):
        made.node(f"n{index}", conditions={"Consolidatable": "Consolidatable"})
        made.event(350 + index, "Node", f"ip-n{index}", "DisruptionBlocked", words.format(index))
    made.node("other")
    made.event(150, "Node", "ip-other", "Unconsolidatable", "Not all pods would schedule, a/b-1 => incompatible")
    (three, one) = wording.causes(judged(read(made.lines())).remaining)
    assert (len(three.nodes), three.details) == (3, words.format(0) + "; also data/ledger-1, data/ledger-2")
    assert one.details == "Not all pods would schedule, a/b-1 => incompatible"


def test_of_many_pods_the_first_few_are_named() -> None:
    made = Made()
    made.pool()
    for index in range(10, 20):
        made.node(f"n{index}")
        words = f"Not all pods would schedule, shop/web-{index} => incompatible"
        made.event(150, "Node", f"ip-n{index}", "Unconsolidatable", words)
    (one,) = wording.causes(judged(read(made.lines())).remaining)
    assert one.details == (
        "Not all pods would schedule, shop/web-10 => incompatible; also shop/web-11, shop/web-12, shop/web-13 and 6 "
        "more"
    )


def test_nodes_that_have_drifted_and_stay_are_in_the_first_lines() -> None:
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "0"}]})
    made.node("one", conditions={"Drifted": "NodePoolDrifted"})
    made.node("two")
    answer = judged(read(made.lines()))
    assert (
        "1 drifted node not replaced until somebody changes something; none of 2 nodes goes; no pod is"
        in answer.sentence
    )
    assert "| nodes that have drifted and stay | | 1 |" in re.sub(" +", " ", markdown.render(answer))
    assert "0 go; 1 drifted and stay" in Page(page.render(answer)).text
    assert "drifted" not in judged(told("eks.consolidation-policies", 3)).sentence


def test_a_week_that_varies_is_drawn() -> None:
    made = Made()
    made.pool(disruption={"budgets": [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}]})
    made.node("one", conditions={"Drifted": "NodePoolDrifted"})
    answer = judged(read(made.lines()))
    html = page.render(answer)
    assert html.count('<td class="none">0</td>') == 5 * 8
    assert "they forbid it now: default: Drifted" in Page(html).text
    assert "Mon to Fri: 1 from 0 to 9 h, 0 from 9 to 17 h, 1 from 17 to 24 h" in markdown.render(answer)


def test_a_large_answer_fits_into_a_comment() -> None:
    made = Made()
    made.pool()
    for index in range(300):
        made.node(f"a-node-with-a-long-name-{index}", disrupted=150, deleting=160, gone=300)
        made.pod(f"web-{index}", f"a-node-with-a-long-name-{index}", workload=f"workload-{index}", leaving=280)
        made.event(
            150 + index / 10, "Node", f"ip-a-node-with-a-long-name-{index}", "FailedDraining", "violates a PDB " * 20
        )
    text = markdown.render(judged(read(made.lines())))
    assert len(text) <= LONGEST + 200
    assert text.count("<details>") == text.count("</details>")
    assert "whatif.html" in text


def test_the_base_is_set_beside_the_real_cluster_when_it_was_loaded_and_when_it_had_settled() -> None:
    made = Made()
    made.pool()
    made.node("one")
    made.node("two", gone=50)
    nodes = {"of": 2, "made": 2, "podsPlaced": 0, "leftOut": []}
    real = [RealNode("m5.large", "us-east-1a", "on-demand", "default", 0.096)] * 2
    answer = judged(read(made.lines(loaded={"pods": 0, "nodes": nodes})), real=real)
    assert "| nodes | 2 | 2 | 1 | 50.0 % |" in markdown.render(answer)
    row = '<tr><td>nodes</td><td class="number">2</td><td class="number">2</td><td class="number">1</td>'
    assert row in page.render(answer)
    assert "base when loaded" not in page.render(judged(read(made.lines()), real=real))


@pytest.mark.parametrize(("said", "words"), [({}, "settled after"), ({"gaveUp": "480 s"}, "not settled after")])
def test_the_page_says_what_the_run_says_of_rest(said: dict[str, str], words: str) -> None:
    made = Made()
    made.pool()
    made.node("one")
    text = Page(page.render(judged(read(made.lines(change_settled=said))))).text
    assert f"{words} 5 min 00 s" in text
    assert ("not settled after" in text) == bool(said)


def test_nodes_are_called_by_their_node_claims_and_by_the_snapshots_names() -> None:
    made = Made()
    made.pool()
    made.node("general-a", standsFor="ip-10-0-1-2", simulated=True, disrupted=150, deleting=151, gone=160)
    made.node("general-b", simulated=True)
    answer = judged(read(made.lines()))
    assert answer.blast_radius is not None
    assert [one.name for one in answer.blast_radius.replaced] == ["ip-10-0-1-2"]
    assert [one.name for one in answer.remaining] == [None]
    for text in (markdown.render(answer), page.render(answer)):
        assert "general-a (ip-10-0-1-2): m5.large" in html.unescape(text)
        assert "ip-general" not in text


@pytest.mark.timeout(10)
def test_long_words_of_a_controller_are_searched_once() -> None:
    assert wording._POD.sub("", f"{'a' * 100_000}! can't evict ns/web-1 => x").endswith("can't evict  => x")


def test_a_difference_is_no_share_of_nothing() -> None:
    minus = "\N{MINUS SIGN}"
    assert wording.change(2.217526, 2.208995) == f"{minus}$0.0085 ({minus}0.4 %)"
    assert wording.change(2.0, 2.5) == "+$0.500 (+25 %)"
