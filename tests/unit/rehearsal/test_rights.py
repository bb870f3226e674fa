"""Recordings of rights: what is kept of them, how they are judged, and what the command says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from karpstack.rehearsal import recorded_rights
from karpstack.rehearsal.recorded_rights import (
    ANY_ROLE,
    UNKNOWN,
    Principal,
    Question,
    Recorder,
    Recording,
    Use,
    generalised,
)
from karpstack.rehearsal.rights import reasons
from karpstack.rehearsal.rights.distilling import distilled
from karpstack.rehearsal.rights.judging import judge
from karpstack.rehearsal.rights.reasons import Reason, ReasonsError
from karpstack.rehearsal.rights.review import review
from tests.unit.command_line import karpstack

main = karpstack()

INSTANCE = "arn:aws:ec2:us-east-1:123456789012:instance/i-0a1b2c3d4e5f60718"
SAME = "arn:aws:ec2:us-east-1:123456789012:instance/i-9a1b2c3d4e5f60718"
NODES = "/subscriptions/s/resourceGroups/nodes"
MACHINE = f"{NODES}/providers/Microsoft.Compute/virtualMachines/aks-default-8xk2b"


def policy(**change: Any) -> dict[str, Any]:
    statement = {
        "Sid": "End",
        "Effect": "Allow",
        "Action": ["ec2:TerminateInstances", "ec2:StopInstances"],
        "Resource": "arn:aws:ec2:us-east-1:*:instance/*",
        "Condition": {"StringEquals": {"aws:ResourceTag/owner": "us"}, "StringLike": {"aws:ResourceTag/pool": "*"}},
    }
    return {"Version": "2012-10-17", "Statement": [{**statement, **change}]}


OWNED = {"aws:ResourceTag/owner": "us", "aws:ResourceTag/pool": "a"}
ENDED = Question("ec2:TerminateInstances", INSTANCE, OWNED)


def on_aws(*questions: Question, document: dict[str, Any] | None = None) -> Recording:
    uses = [Use(question, 2) for question in questions]
    return Recording("aws", [Principal("controller", {"policy": document or policy()}, uses)])


def role(name: str, *actions: str, scope: str = NODES) -> dict[str, Any]:
    return {"role": name, "scope": scope, "actions": list(actions), "notActions": ["*/runCommand/action"]}


def on_azure(*questions: Question, **roles: dict[str, Any]) -> Recording:
    documents = {f"{one['role']} on {one['scope']}": one for one in roles.values()}
    return Recording("azure", [Principal("controller", documents, [Use(question, 1) for question in questions])])


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (INSTANCE, "arn:aws:ec2:us-east-1:123456789012:instance/i-*"),
        (MACHINE, f"{NODES}/providers/Microsoft.Compute/virtualMachines/aks-*"),
        ("fleet-f921e605-d68f-1c72-342912a56f9b", "fleet-*"),
        ("karpstack-eks_4481234792429300755", "karpstack-eks_*"),
        ("spot-consolidation-swcx8", "spot-consolidation-*"),
        ("ip-10-0-3-4.ec2.internal", "*.ec2.internal"),
        ("arn:aws:iam::123456789012:role/karpstack-eks-karpenter-nodes",) * 2,
        ("arn:aws:ssm:us-east-1::parameter/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64",) * 2,
    ],
)
def test_what_is_made_up_is_not_told_apart(value: str, kept: str) -> None:
    assert generalised(value) == kept


def test_a_recorder_counts_what_differs_in_made_up_names_only(tmp_path: Path) -> None:
    path = tmp_path / "rights.json"
    recorder = Recorder("aws")
    recorder.write_to(path)
    recorder.heard("controller", ENDED, {"policy": policy()}, allowed=True)
    recorder.heard("controller", Question(ENDED.action, SAME, OWNED), {}, allowed=False)
    (kept,) = recorded_rights.read([path]).principals
    assert [use.count for use in kept.uses] == [1]  # the second is nothing new, and written at the end
    recorder.close()
    (kept,) = recorded_rights.read([path]).principals
    assert kept == Principal("controller", {"policy": policy()}, [Use(ENDED, 2, 1)])
    recorder.heard("controller", Question(ENDED.action, SAME, {"aws:ResourceTag/owner": "them"}), {}, allowed=False)
    assert len(recorded_rights.read([path]).principals[0].uses) == 2  # something new is written at once


def test_a_recorder_without_a_file_writes_none(tmp_path: Path) -> None:
    Recorder("aws").heard("controller", ENDED, {}, allowed=True)
    quiet = Recorder("aws")
    quiet.write_to(tmp_path / "rights.json")
    quiet.close()
    assert not list(tmp_path.iterdir())


def test_several_recordings_are_one(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in paths:
        path.write_text(recorded_rights.text(on_aws(ENDED)))
    (together,) = recorded_rights.read(paths).principals
    assert together.uses == [Use(ENDED, 4)]
    paths[1].write_text(recorded_rights.text(on_azure(Question("a/read", MACHINE), one=role("Reader", "*/read"))))
    with pytest.raises(recorded_rights.RecordingError, match="of one cloud"):
        recorded_rights.read(paths)


def test_a_role_that_asked_nothing_has_its_rights_told(tmp_path: Path) -> None:
    path = tmp_path / "rights.json"
    path.write_text(recorded_rights.text(Recording("aws", [Principal("idle", {"policy": policy()}, [])])))
    found = recorded_rights.read([path])
    assert found.principals == [Principal("idle", {"policy": policy()}, [])]
    (problem,) = review(found, []).problems
    assert "ec2:TerminateInstances, ec2:StopInstances on instance/* was not used" in problem


@pytest.mark.parametrize("row", yaml.safe_load(Path(__file__).with_name("rights.yaml").read_text()), ids=str)
def test_what_is_no_recording_or_no_list_of_rights_is_refused_by_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: dict[str, Any]
) -> None:
    documents = {"d": json.loads(row["document"])} if "document" in row else {}
    if "statement" in row:
        documents = {"policy": policy(**row["statement"])}
    path, uses = tmp_path / "rights.json", "[]"
    if "use" in row:
        use = {"action": '"a"', "resource": '"*"', "context": "{}", "count": "1", **row["use"]}
        uses = f"[{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in use.items())}}}]"
    principal = f'{{"name": "controller", "documents": {json.dumps(documents)}, "uses": {uses}}}'
    path.write_text(f'{{"version": 1, "cloud": "{row.get("cloud", "aws")}", "principals": [{principal}]}}')
    for more in ([], ["--distil", str(tmp_path / "small")]):
        code, told = run(capsys, "--recording", str(path), *more)
        assert (code, row["said"] in told) == (2, True)
        assert "statement" not in row or "document 'policy' of 'controller', statement 'End', " in told
        assert not (tmp_path / "small").exists()


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2, "cloud": "aws"}', '{"version": 1, "cloud": "gcp"}', "[[["])
def test_what_is_no_recording_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rights.json"
    with pytest.raises(recorded_rights.RecordingError, match="rehearse the stack first"):
        recorded_rights.read([path])
    path.write_text(text)
    with pytest.raises(recorded_rights.RecordingError, match=r"rights\.json is no recording of rights"):
        recorded_rights.read([path])
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(recorded_rights.RecordingError, match=r"rights\.json is no recording .*a pipe or a device"):
        recorded_rights.read([path])
    with pytest.raises(ReasonsError, match="a pipe or a device"):
        reasons.read(path, "aws")


@pytest.mark.parametrize(
    "question",
    [
        Question("ec2:RunInstances", INSTANCE, OWNED),
        Question(ENDED.action, INSTANCE.replace("instance", "volume"), OWNED),
        Question(ENDED.action, INSTANCE, {**OWNED, "aws:ResourceTag/owner": "them"}),
        Question(ENDED.action, INSTANCE, {"aws:ResourceTag/owner": "us"}),
    ],
    ids=["action", "resource", "value", "absent"],
)
def test_action_resource_and_conditions_decide(question: Question) -> None:
    assert not judge("aws", on_aws(ENDED).principals[0]).refused
    assert [use.question for use in judge("aws", on_aws(question).principals[0]).refused] == [question]


def test_a_grant_knows_what_it_was_used_for() -> None:
    again = policy(Sid="Again", Action="ec2:Terminate*", Condition={})
    both = {"Statement": [*policy()["Statement"], *again["Statement"]]}
    judged = judge("aws", on_aws(ENDED, document=both).principals[0])
    by_statement = {(grant.statement, grant.action): answered for grant, answered in judged.grants.items()}
    first, second = by_statement["End", "ec2:TerminateInstances"], by_statement["Again", "ec2:Terminate*"]
    assert (first.calls, first.alone, second.calls, second.alone) == (2, 0, 2, 0)
    assert first.conditions == {"aws:ResourceTag/owner": {"us"}, "aws:ResourceTag/pool": {"(any)"}}
    assert second.actions == {"ec2:TerminateInstances"}
    assert [grant.action for grant in judged.unused] == ["ec2:StopInstances"]
    alone = judge("aws", on_aws(ENDED).principals[0]).grants.values()
    assert [(one.calls, one.alone) for one in alone] == [(2, 2), (0, 0)]


def test_a_denial_goes_over_all() -> None:
    both = {"Statement": [*policy()["Statement"], *policy(Effect="Deny", Condition={})["Statement"]]}
    assert judge("aws", on_aws(ENDED, document=both).principals[0]).refused


def test_roles_are_judged_by_action_and_scope() -> None:
    ends, reads = (Question(f"Microsoft.Compute/virtualMachines/{verb}", MACHINE) for verb in ("delete", "read"))
    runs = Question("Microsoft.Compute/virtualMachines/runCommand/action", MACHINE)
    elsewhere = Question("Microsoft.Compute/virtualMachines/read", MACHINE.replace("nodes", "others"))
    sizes = Question("Microsoft.Compute/skus/read", "/subscriptions/s", ANY_ROLE)
    reader, owner = role("Reader", "*/read"), role("Machines", "Microsoft.Compute/virtualMachines/*")
    judged = judge("azure", on_azure(ends, reads, runs, elsewhere, sizes, a=reader, b=owner).principals[0])
    assert [use.question for use in judged.refused] == [runs, elsewhere]
    assert [use.question for use in judged.any_role] == [sizes]
    assert judged.spare == [f"Reader on {NODES}"]
    assert judge("azure", on_azure(sizes).principals[0]).refused  # it needs one role after all


WHY = Reason("End", ("ec2:Stop*",), ("*",), "for later")


def test_what_nothing_used_needs_a_reason() -> None:
    assert review(on_aws(ENDED), [WHY]).problems == []
    (problem,) = review(on_aws(ENDED), []).problems
    assert "End: ec2:StopInstances on instance/*" in problem
    assert "was not used" in problem


def test_a_reason_needs_a_right() -> None:
    (problem,) = review(on_aws(ENDED), [WHY, Reason("Gone", ("*",), ("*",), "?")]).problems
    assert "Gone" in problem
    stopped = Question("ec2:StopInstances", INSTANCE, OWNED)
    after_all = review(on_aws(ENDED, stopped), [WHY])
    assert (after_all.problems, len(after_all.notes)) == ([], 1)


def test_a_call_without_a_right_is_told_and_one_of_an_unknown_action_too() -> None:
    asked = [Question("ec2:RunInstances", INSTANCE, {}), Question("ec2:Describe", UNKNOWN, {})]
    refused, unknown = review(on_aws(ENDED, *asked), [WHY]).problems
    assert "ec2:RunInstances on arn:aws:ec2:us-east-1:123456789012:instance/i-* (2 times)" in refused
    assert "no right allows it" in refused
    assert "questions.py" in unknown


def test_a_role_that_could_go_needs_a_reason() -> None:
    asked = on_azure(
        Question("Microsoft.Compute/virtualMachines/read", MACHINE), a=role("Reader", "*/read"), b=role("All", "*")
    )
    found = review(asked, [])
    assert sorted(found.spare) == ["All on nodes", "Reader on nodes"]
    assert len(found.problems) == 2
    assert found.least == {"nodes": ["Microsoft.Compute/virtualMachines/read"]}
    why = [Reason(name, ("*",), ("*",), "both are wanted", whole=True) for name in ("All", "Reader")]
    assert review(asked, why).problems == []
    unused_only = [Reason(one.statement, one.actions, one.resources, one.text) for one in why]
    assert len(review(asked, unused_only).problems) == 2


def test_what_is_distilled_is_judged_alike() -> None:
    other = Question(ENDED.action, SAME, {**OWNED, "aws:ResourceTag/pool": "b", "aws:ResourceTag/colour": "red"})
    foreign = Question(ENDED.action, SAME, {**OWNED, "aws:ResourceTag/owner": "them"})
    (kept,) = distilled(on_aws(ENDED, other, foreign)).principals
    assert kept.uses == [Use(ENDED, 4), Use(foreign, 2)]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["rights", "eks", *arguments])
    told = capsys.readouterr()
    return code, told.out + told.err


def test_the_command_fails_for_what_is_wrong_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, why = tmp_path / "rights.json", tmp_path / "reasons.json"
    path.write_text(recorded_rights.text(on_aws(ENDED)))
    entry = {"statement": "End", "actions": ["ec2:StopInstances"], "reason": "for [later]"}
    why.write_text(json.dumps({"aws": [entry]}))
    options = ["--recording", str(path), "--reasons", str(why)]
    code, told = run(capsys, *options)
    assert (code, "for [later]" in told) == (0, True)
    code, told = run(capsys, *options, "--format", "json")
    assert (code, json.loads(told)["problems"]) == (0, [])
    assert json.loads(told)["unused"][0]["reason"] == "for [later]"
    code, told = run(capsys, *options, "--format", "markdown")
    assert (code, "| End | ec2:TerminateInstances |" in told) == (0, True)
    why.write_text('{"aws": []}')
    assert run(capsys, *options)[0] == 1
    why.write_text("{}")
    code, told = run(capsys, *options)
    assert (code, "gives no reasons" in told) == (2, True)


#: Sets a terminal's title, turns text around, begins a line, ends a column, is markup of three kinds.
HOSTILE = "\x1b]0;t\x07\u202e\n| x | [bold]<b>`*"
TOLD = r"\x1b]0;t\x07\u202e\n| x | [bold]<b>`*"
ON_A_PAGE = r"\\x1b]0;t\\x07\\u202e\\n\| x \| \[bold]\<b>\`\*"
IN_CODE = r"`a/\x1b]0;t\x07\u202e| x | [bold]<b>\x60*`"


def hostile_on_aws() -> Recording:
    context = {**OWNED, "aws:ResourceTag/pool": HOSTILE, HOSTILE: HOSTILE}
    asked = [
        Question("ec2:Run" + HOSTILE, f"arn:aws:ec2:us-east-1:1:instance/{HOSTILE}", context),
        Question("ec2:Start" + HOSTILE, INSTANCE, context),
    ]
    document = policy(
        Sid=HOSTILE,
        Action=["ec2:Run*", "ec2:Stop" + HOSTILE],
        Resource=["*", "arn:aws:ec2:us-east-1:1:" + HOSTILE],
        Condition={"StringLike": {HOSTILE: HOSTILE[:1] + "*"}},
    )
    return Recording("aws", [Principal(HOSTILE, {HOSTILE: document}, [Use(question, 1) for question in asked])])


def hostile_on_azure() -> Recording:
    spare = role(HOSTILE, "a/*", scope=f"{NODES}/{HOSTILE}"), role("Other", "*", scope=f"{NODES}/{HOSTILE}")
    asked = Question("a/" + HOSTILE.replace("\n", ""), f"{NODES}/{HOSTILE}/machine")
    return on_azure(asked, a=spare[0], b=spare[1])


@pytest.mark.parametrize("recorded", [hostile_on_aws(), hostile_on_azure()], ids=["aws", "azure"])
def test_what_a_recording_says_steers_no_terminal_and_is_no_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, recorded: Recording
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    path, why = tmp_path / "rights.json", tmp_path / "reasons.json"
    path.write_text(recorded_rights.text(recorded))
    entry = {"statement": HOSTILE, "actions": ["none"], "reason": HOSTILE}
    why.write_text(json.dumps({recorded.cloud: [entry, {**entry, "actions": ["*"], "whole": True}]}))
    options = ["--recording", str(path), "--reasons", str(why)]
    _, told = run(capsys, *options)
    assert TOLD in told
    _, page = run(capsys, *options, "--format", "markdown")
    assert ON_A_PAGE in page
    assert (IN_CODE in page, "is used but not needed" in page) == (recorded.cloud == "azure",) * 2
    for one in (told, page):
        assert all(character.isprintable() or character == "\n" for character in one)
        assert not [line for line in one.splitlines() if line.startswith("| x |")]
    assert set(re.findall(r"(?<!\\)<[^>]*>", page.replace(IN_CODE, ""))) <= {"<br>"}


def test_the_command_distils(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, small = tmp_path / "rights.json", tmp_path / "small.json"
    path.write_text(recorded_rights.text(on_aws(Question(ENDED.action, INSTANCE, {**OWNED, "colour": "red"}))))
    run(capsys, "--recording", str(path), "--distil", str(small))
    (kept,) = recorded_rights.read([small]).principals
    assert kept.uses == [Use(ENDED, 2)]


def test_without_a_rehearsal_there_is_nothing_to_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, told = run(capsys, "--state", str(tmp_path))
    assert (code, "rehearse the stack first" in told.replace("\n", " ")) == (2, True)


def test_the_first_reason_counts() -> None:
    (unused,) = judge("aws", on_aws(ENDED).principals[0]).unused
    general = Reason("End", ("*",), ("*",), "whatever")
    assert reasons.reason_for(unused, [WHY, general]) == "for later"
    assert reasons.reason_for(unused, [general, WHY]) == "whatever"
    assert reasons.reason_for(unused, []) == ""
