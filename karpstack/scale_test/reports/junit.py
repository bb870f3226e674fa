"""The report in JUnit's terms: a suite a story, a case an assertion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from junitparser import Failure, JUnitXml, TestCase, TestSuite

from karpstack.text.shown import visible

from .report import message


def junit(report: Mapping[str, Any]) -> JUnitXml:
    """The document, to be written to junit.xml."""
    document = JUnitXml(visible(f"scale test of {report['stack']}"))
    for story in report["stories"]:
        suite = TestSuite(visible(story["name"]))
        suite.timestamp = story["started"]
        for assertion in story["assertions"]:
            case = TestCase(visible(assertion["name"]), classname=visible(f"scale_test.{story['name']}"))
            if not assertion["passed"]:
                case.result = [Failure(visible(message(assertion)), type_="expectation")]
            suite.add_testcase(case)
        document.add_testsuite(suite)
        suite.time = story["seconds"]
    return document
