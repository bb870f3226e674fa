"""Trust: who may take a role of AWS. Does not judge what the role allows (identity.py)."""

from __future__ import annotations

import re

from .iam_documents import EXACT, covers, listed, statements
from .rule import Judgement, Properties, ResourceRule, section
from .tokens import IAM_ROLE

# What the tokens of a cluster's service accounts say.
_CLAIMS = {
    "sub": (re.compile(r"system:serviceaccount:[^:*?$]+:[^:*?$]+"), "system:serviceaccount:<namespace>:<name>"),
    "aud": (re.compile(r"sts\.amazonaws\.com"), "sts.amazonaws.com"),
}
# What EKS Pod Identity says of whom it takes a role for; the cluster is said in one of two ways.
_POD_IDENTITY = "pods.eks.amazonaws.com"
_POD_IDENTITY_CONDITIONS = (
    ("aws:RequestTag/kubernetes-namespace",),
    ("aws:RequestTag/kubernetes-service-account",),
    ("aws:RequestTag/eks-cluster-arn", "aws:SourceArn"),
)
_ACCOUNT = re.compile(r"\d{12}|arn:[^:]+:iam::\d{12}:root")


def _trust(role: Properties, judgement: Judgement) -> None:
    if "assumeRolePolicy" not in set(role):
        return
    for where, statement in statements("assumeRolePolicy", role["assumeRolePolicy"], judgement):
        with judgement.part():
            if statement.get("Effect") == "Allow":
                _statement(where, statement, judgement)


def _statement(where: str, statement: Properties, judgement: Judgement) -> None:
    principal = statement.get("Principal")
    if principal is None or isinstance(principal, str):
        judgement.violation(f"{where} trusts {principal or 'all but those in NotPrincipal'}.")
        return
    for kind in principal:
        with judgement.part():
            names = listed(principal[kind])
            for index in range(len(names)):
                with judgement.part():
                    _principal(where, kind, names[index], judgement)
    with judgement.part():
        if "Service" in principal and _POD_IDENTITY in listed(principal["Service"]):
            _pods(where, section(statement, "Condition"), judgement)
    with judgement.part():
        if covers(statement, "sts:assumerolewithwebidentity"):
            _token(where, section(statement, "Condition"), judgement)


def _principal(where: str, kind: str, name: str, judgement: Judgement) -> None:
    if "*" in name or (kind == "AWS" and _ACCOUNT.fullmatch(name)):
        judgement.violation(f"{where} trusts {kind} {name}.")


def _pods(where: str, condition: Properties, judgement: Judgement) -> None:
    exact: set[str] = set()
    for operator in ("StringEquals", "ArnEquals"):
        for key, values in section(condition, operator).items():
            found = listed(values)
            if len(found) == 1 and EXACT.fullmatch(found[0]):
                exact.add(key.lower())
    for keys in _POD_IDENTITY_CONDITIONS:
        if not exact & {key.lower() for key in keys}:
            judgement.violation(
                f"{where} trusts {_POD_IDENTITY} without StringEquals on {' or '.join(keys)}, with one value."
            )


def _token(where: str, condition: Properties, judgement: Judgement) -> None:
    exact = section(condition, "StringEquals")
    for claim in ("sub", "aud"):
        with judgement.part():
            values: list[str] = []
            of_cluster = False
            for key in exact:
                if key.endswith(f":{claim}"):
                    entries = listed(exact[key])
                    values.extend(entries[index] for index in range(len(entries)))
                    of_cluster = of_cluster or key.startswith("oidc.eks.")
            pattern, form = _CLAIMS[claim] if of_cluster else (EXACT, "one value without wildcards")
            if not values:
                judgement.violation(f"{where} has no StringEquals on the token's {claim}.")
            elif len(values) > 1 or not pattern.fullmatch(values[0]):
                judgement.violation(f"{where} takes the {claim} {', '.join(values)}, not {form}.")


IAM_TRUST_BOUND = ResourceRule(name="iam-trust-bound", checks={IAM_ROLE: _trust})
