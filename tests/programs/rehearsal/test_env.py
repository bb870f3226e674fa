"""What `karpstack env` prints, in a shell."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.command_line import karpstack

main = karpstack()


@pytest.mark.parametrize(("mode", "words", "code"), [(0o700, "is not up", 3), (0o777, "can be written by others", 2)])
def test_what_is_done_by_hand_reaches_nothing_where_the_stack_is_not_up(
    mode: int, words: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(mode)
    assert main(["env", "eks", "--state", str(tmp_path)]) == code
    said = capsys.readouterr()
    script = f"export KUBECONFIG=/home/me/production AWS_PROFILE=production\n{said.out}"
    result = subprocess.run(
        ["sh", "-c", f'{script}\necho "$? $KUBECONFIG $PULUMI_BACKEND_URL $AWS_PROFILE"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["1", "/dev/null", "file:///dev/null"]
    assert words in said.err
