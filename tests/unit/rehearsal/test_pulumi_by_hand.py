"""Which stack file a `pulumi` by hand gets: the copy, made from what the user edits, or that file itself."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from karpstack.rehearsal.engines import EngineSet
from karpstack.rehearsal.session import deployment, pulumi_by_hand
from karpstack.rehearsal.session.daemon import DaemonInfo
from karpstack.rehearsal.session.stack_file import StackFileError
from karpstack.rehearsal.state.folder import StackFolder

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = {"karpstack:cloud": "aws", "aws:region": "us-east-1"}


class Stack:
    """A stack file that the user edits, and the copy of it."""

    def __init__(self, folder: Path) -> None:
        self.edited = folder / "mine.yaml"
        self.copy = folder / "Pulumi.eks.yaml"
        self.write(**SETTINGS)
        self.copy.write_text("encryptionsalt: v1:ours\n")

    def write(self, **settings: str) -> None:
        self.edited.write_text(yaml.safe_dump({"config": {**SETTINGS, **settings}}))

    def chosen(self, *arguments: str, folder: Path = ROOT, more: Mapping[str, str] | None = None) -> Path | None:
        variables = {
            pulumi_by_hand.EDITED: str(self.edited),
            pulumi_by_hand.PROGRAM: str(ROOT),
            pulumi_by_hand.COPY: str(self.copy),
            "PULUMI_STACK": "eks",
            **(more or {}),
        }
        return pulumi_by_hand.stack_file(arguments, variables, folder)

    def read(self) -> dict[str, object]:
        return dict(yaml.safe_load(self.copy.read_text()))


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


#: A command of Pulumi's -> the file that it gets, the copy having been made from what was edited; or what is refused.
CHOSEN = {
    "preview": "copy",
    "up --yes": "copy",
    "--color never -s eks preview": "copy",
    "config": "copy",
    "config get": "copy",
    "preview --config karpstack:name=x": "copy",  # which saves nothing
    "config set karpstack:name x": "edited",
    "config -s eks set --path a.b -- -1": "edited",
    f"--cwd {ROOT} config rm karpstack:name": "edited",
    "config set-all --plaintext a=b": "edited",
    "config remove karpstack:name": "edited",
    "config delete karpstack:name": "edited",
    "config cp --dest other": "edited",
    "config env add team": "edited",
    "-seks config set karpstack:name x": "edited",
    "--stack organization/karpstack/eks config set karpstack:name x": "edited",
    "--otel-traces file:x config set karpstack:name x": "edited",
    "-s other preview": None,
    "-sother config set a b": None,
    "preview --stack=other": None,
    "preview --config-file x.yaml": None,
    "config set --secret a b": r"opened nowhere else; .*--config-file FILE",
    "config set-all --secret a=b": r"opened nowhere else; .*--config-file FILE",
    "config refresh --force": r"would write over .*mine.yaml",
    "up --config karpstack:name=x": "the next command loses it",
    "up -y -ckarpstack:name=x": "the next command loses it",
}


@pytest.mark.parametrize(("command", "chosen"), CHOSEN.items())
def test_the_file_that_a_command_gets(stack: Stack, command: str, chosen: str | None) -> None:
    stack.write(**{"karpstack:name": "edited"})
    files = {"copy": stack.copy, "edited": stack.edited, None: None}
    if chosen in files:
        assert stack.chosen(*command.split()) == files[chosen]
    else:
        with pytest.raises(StackFileError, match=str(chosen)):
            stack.chosen(*command.split())
    if chosen == "copy":
        assert stack.read() == {"config": {**SETTINGS, "karpstack:name": "edited"}, "encryptionsalt": "v1:ours"}
    if chosen is None:
        assert stack.chosen("preview", more={pulumi_by_hand.CONFIG_FILE: "x.yaml"}) is None


def test_another_program_has_a_stack_file_of_its_own(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "program" / "inner").mkdir(parents=True)
    (tmp_path / "program" / "Pulumi.yaml").touch()
    assert stack.chosen("preview", folder=tmp_path / "program" / "inner") is None
    assert stack.chosen("-C", "program", "preview", folder=tmp_path) is None
    assert stack.chosen("preview", folder=ROOT / "tests") == stack.copy


def test_a_file_that_cannot_be_rehearsed_is_an_error_and_hides_no_outputs(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.edited.write_text("config: [")
    monkeypatch.chdir(ROOT)
    variables = {
        pulumi_by_hand.EDITED: str(stack.edited),
        pulumi_by_hand.PROGRAM: str(ROOT),
        pulumi_by_hand.COPY: str(stack.copy),
        "PULUMI_STACK": "eks",
    }
    with pytest.raises(SystemExit, match=f"error: {stack.edited}: not YAML"):
        pulumi_by_hand.main(["preview"], variables)
    assert stack.chosen("stack", "output") == stack.copy


def test_the_rehearsals_environment_names_the_file_and_no_file_to_pulumi(tmp_path: Path) -> None:
    folder = StackFolder("eks", tmp_path)
    engines, info = EngineSet(tmp_path), DaemonInfo(1, 1.0, "aws", "us-east-1")
    assert deployment.environment(folder, engines, info)[pulumi_by_hand.EDITED] == str(ROOT / "Pulumi.eks.yaml")
    folder.edited.parent.mkdir()
    folder.edited.write_text("/home/me/mine.yaml")
    folder.program.write_text("/home/me")
    found = deployment.environment(folder, engines, info)
    assert found[pulumi_by_hand.EDITED] == "/home/me/mine.yaml"
    assert found[pulumi_by_hand.PROGRAM] == "/home/me"
    assert pulumi_by_hand.CONFIG_FILE not in found
    first = Path(found["PATH"].split(":")[0]) / "pulumi"
    assert first.is_file()
    assert found[pulumi_by_hand.PULUMI] != str(first)


@pytest.mark.parametrize("command", ["preview", "up --yes", "destroy", "refresh", "import a b c", "--color never up"])
def test_providers_of_a_rehearsal_that_is_gone_are_not_asked(command: str, stack: Stack, tmp_path: Path) -> None:
    """Another user may listen at their ports, and would get the inputs of all resources."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        given = {pulumi_by_hand.PROVIDERS: f"aws:{port},kubernetes:{port}"}
        pulumi_by_hand.refuse_strangers(command.split(), given)
    with pytest.raises(StackFileError, match=r"rehearsal of this shell has ended.* whoever listens there"):
        pulumi_by_hand.refuse_strangers(command.split(), given)
    for harmless in ("stack output", "config get a", "version", ""):
        pulumi_by_hand.refuse_strangers(harmless.split(), given)
