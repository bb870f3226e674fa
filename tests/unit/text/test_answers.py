"""All answers to one who asks have a limit of time together."""

from __future__ import annotations

from threading import Event

import pytest

from karpstack.text import answers


def test_a_server_that_hangs_is_not_asked_again_when_the_time_for_all_is_over() -> None:
    asked, ended = [], Event()

    def ask() -> None:
        asked.append(1)
        ended.wait(10)

    allowance = answers.Allowance(0.2)
    with pytest.raises(answers.AnswerError, match=r"the answer takes longer than 0\.\d+ s"):
        answers.read(ask, lambda _: None, allowance=allowance)
    with pytest.raises(answers.AnswerError, match=r"all answers together take longer than 0\.2 s"):
        answers.read(ask, lambda _: None, allowance=allowance)
    assert asked == [1]
    ended.set()
