"""A survey lists all that a program needs and the rehearsal does not have, and creates nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from karpstack.rehearsal.attachment.package import Configuration, Provider
from karpstack.rehearsal.attachment.resource import Failure, Properties
from karpstack.rehearsal.attachment.server import Servicer
from karpstack.rehearsal.attachment.survey import Survey
from karpstack.rehearsal.attachment.values import decode, encode
from tests.unit.rehearsal.resource_world import AbortedError, Context
from tests.unit.rehearsal.test_provider_server import Bucket


def request(kind: type[Any], type: str, **more: Any) -> Any:
    return kind(urn=f"urn:pulumi:s::p::{type}::mine", type=type, name="mine", **more)


@pytest.fixture
def survey(tmp_path: Path) -> Survey:
    return Survey(tmp_path / "survey.jsonl")


@pytest.fixture
def servicer(survey: Survey) -> Servicer:
    configuration = Configuration(frozenset({"region"}), lambda settings, cancelled: Provider([Bucket(), Lake()]))
    servicer = Servicer("fake", "2.1.0", configuration, survey)
    servicer.Configure(provider_pb2.ConfigureRequest(), Context())
    return servicer


def refused(call: Callable[..., Any], *arguments: Any) -> str:
    context = Context()
    with pytest.raises(AbortedError):
        call(*arguments, context)
    return context.text


def test_everything_unsupported_is_listed_once_and_the_preview_goes_on(servicer: Servicer, survey: Survey) -> None:
    survey.begin()
    check = provider_pb2.CheckRequest
    answer = servicer.CheckConfig(
        request(check, "pulumi:providers:fake", news=encode({"version": "1.9.0", "region": "x", "endpoint": "y"})),
        Context(),
    )
    assert not answer.failures
    for _ in range(2):
        found = servicer.Check(request(check, "fake:index:Queue", news=encode({"a": 1})), Context())
        assert (decode(found.inputs), list(found.failures)) == ({"a": 1}, [])
    found = servicer.Check(request(check, Bucket.token, news=encode({"size": 2, "syze": 3})), Context())
    assert not found.failures
    assert "syze" not in found.inputs.fields
    made = provider_pb2.CreateRequest
    shown = servicer.Create(request(made, "fake:index:Queue", properties=encode({"a": 1}), preview=True), Context())
    assert (shown.id, decode(shown.properties)) == ("", {"a": 1})
    refused(servicer.Create, request(made, "fake:index:Queue", properties=encode({"a": 1})))
    answered = servicer.Invoke(provider_pb2.InvokeRequest(tok="fake:index:sum"), Context())
    assert decode(getattr(answered, "return")) == {}
    refused(servicer.Construct, provider_pb2.ConstructRequest(type="fake:index:Everything", name="all"))
    refused(servicer.Call, provider_pb2.CallRequest(tok="fake:index:Bucket/empty"))
    assert survey.end() == [
        "pulumi:providers:fake mine: the setting endpoint",
        "pulumi:providers:fake mine: version 1.9.0 of the package; the rehearsal plays 2.1.0",
        "fake:index:Queue mine",
        "fake:index:Bucket mine: the property syze",
        "function fake:index:sum",
        "fake:index:Everything all",
        "method fake:index:Bucket/empty",
    ]


class Lake(Bucket):
    """A type whose check refuses two values: one the cloud would refuse, and one the rehearsal does not support."""

    token = "fake:index:Lake"

    def check(self, inputs: Mapping[str, Any], *, name: str) -> tuple[Properties, list[Failure]]:
        return dict(inputs), [Failure("size", "too large"), Failure("kind", "blue is missing", unsupported=True)]


def test_values_that_the_rehearsal_does_not_support_are_listed_and_those_of_the_cloud_refused(
    servicer: Servicer, survey: Survey
) -> None:
    lake = request(provider_pb2.CheckRequest, Lake.token, news=encode({"size": 2}))
    both = servicer.Check(lake, Context()).failures
    survey.begin()
    left = servicer.Check(lake, Context()).failures
    assert [[one.property for one in found] for found in (both, left)] == [["size", "kind"], ["size"]]
    assert survey.end() == ["fake:index:Lake mine: the property kind: blue is missing"]


def test_settings_without_a_version_are_those_of_the_package_that_is_there(servicer: Servicer, survey: Survey) -> None:
    survey.begin()
    news = encode({"region": "x"})
    servicer.CheckConfig(request(provider_pb2.CheckRequest, "pulumi:providers:fake", news=news), Context())
    assert survey.end() == []


def test_without_a_survey_the_first_one_is_refused(servicer: Servicer, survey: Survey) -> None:
    survey.begin()
    assert survey.end() == []
    said = refused(servicer.Check, request(provider_pb2.CheckRequest, "fake:index:Queue"))
    assert "no stand-in for fake:index:Queue" in said
    answer = servicer.Check(request(provider_pb2.CheckRequest, Bucket.token, news=encode({"syze": 3})), Context())
    assert [one.property for one in answer.failures] == ["syze"]
    assert survey.end() == []


def test_a_survey_ends_with_the_process_that_started_it(servicer: Servicer, tmp_path: Path) -> None:
    (tmp_path / "survey.jsonl").write_text(f"{2**31 - 1}\n")  # no process has this id
    said = refused(servicer.Check, request(provider_pb2.CheckRequest, "fake:index:Queue"))
    assert "no stand-in for fake:index:Queue" in said
