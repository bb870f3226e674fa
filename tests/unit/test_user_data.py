"""User data of nodes: what the stack adds, and that a user's own stays beside it."""

from __future__ import annotations

import base64
import json
import tomllib
from email import message_from_string
from typing import Any

import pytest

from karpstack.components.documents import user_data
from karpstack.components.documents.proxy import NO_EGRESS, Egress
from karpstack.components.documents.user_data import UserDataError, al2023, bottlerocket, family, node_class_user_data
from karpstack.components.problems import finding
from tests.unit.made_certificates import certificate

ROOT = certificate()
EGRESS = Egress(
    variables={"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://p:2", "NO_PROXY": "localhost,.svc"},
    certificates=[ROOT],
    mirrors={"docker.io": "mirror.example.com/hub", "ghcr.io": "mirror.example.com"},
)
PROXY = Egress(variables=EGRESS.variables)
SCRIPT = "#!/bin/bash\necho 'Hello'\n"
CONFIG = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  instance: {localStorage: {strategy: RAID0}}\n"
ARCHIVE = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

{CONFIG}
--//
Content-Type: text/x-shellscript; charset="us-ascii"

{SCRIPT}
--//
"""


def parts(text: str) -> list[tuple[str, str]]:
    archive = message_from_string(text)
    assert archive.is_multipart()
    found = archive.get_payload()
    assert isinstance(found, list)
    return [(part["Content-Type"].partition(";")[0], str(part.get_payload())) for part in found]  # type: ignore[index,union-attr]


def test_al2023_is_told_by_a_node_config_and_a_script() -> None:
    (kind, config), (other, script) = parts(al2023(EGRESS))
    assert (kind, other) == ("application/node.eks.aws", "text/x-shellscript")
    variables = json.loads(config)["spec"]["instance"]["environment"]["default"]
    assert variables["HTTPS_PROXY"] == variables["https_proxy"] == "http://p:2"
    assert variables["NO_PROXY"] == variables["no_proxy"] == "localhost,.svc"
    lines = script.splitlines()
    assert lines[0] == "#!/bin/bash"
    assert ROOT in script
    assert lines.index("update-ca-trust") < lines.index("mkdir -p /etc/containerd/certs.d/docker.io")
    hosts = script.partition("/etc/containerd/certs.d/docker.io/hosts.toml <<'EOF'\n")[2].partition("EOF")[0]
    assert tomllib.loads(hosts) == {
        "host": {
            "https://mirror.example.com/v2/hub": {"capabilities": ["pull", "resolve"], "override_path": True},
        }
    }
    whole = script.partition("/etc/containerd/certs.d/ghcr.io/hosts.toml <<'EOF'\n")[2].partition("EOF")[0]
    assert tomllib.loads(whole) == {"host": {"https://mirror.example.com": {"capabilities": ["pull", "resolve"]}}}


def test_only_what_is_said_is_added() -> None:
    assert [kind for kind, _ in parts(al2023(PROXY))] == ["application/node.eks.aws"]
    (told,) = parts(al2023(Egress(mirrors={"docker.io": "m.example.com"})))
    assert "update-ca-trust" not in told[1]
    assert node_class_user_data({"amiFamily": "AL2023"}, NO_EGRESS) is None
    assert node_class_user_data({"amiFamily": "AL2023", "userData": SCRIPT}, NO_EGRESS) == SCRIPT


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        (SCRIPT, [("text/x-shellscript", SCRIPT)]),
        (CONFIG, [("application/node.eks.aws", CONFIG)]),
        (ARCHIVE, [("application/node.eks.aws", CONFIG), ("text/x-shellscript", SCRIPT)]),
        (f"\n{ARCHIVE}", [("application/node.eks.aws", CONFIG), ("text/x-shellscript", SCRIPT)]),
        (" \n", []),
    ],
)
def test_a_users_own_comes_last_and_as_it_was(own: str, kept: list[tuple[str, str]]) -> None:
    assert parts(al2023(EGRESS, own))[2:] == kept


def test_headers_of_a_users_part_stay() -> None:
    own = ARCHIVE.replace(
        'Content-Type: text/x-shellscript; charset="us-ascii"',
        'Content-Type: text/x-shellscript;\n charset="utf-8"\nContent-Disposition: attachment; filename="a.sh"',
    )
    made = al2023(PROXY, own)
    assert 'Content-Type: text/x-shellscript; charset="utf-8"\nContent-Disposition: attachment; filename="a.sh"' in made


def test_the_boundary_is_in_no_part() -> None:
    first = al2023(PROXY, SCRIPT)
    boundary = first.partition('boundary="')[2].partition('"')[0]
    assert len(parts(al2023(PROXY, f"{SCRIPT}# --{boundary}\n"))) == 2


@pytest.mark.parametrize(
    ("make", "own", "code"),
    [
        (al2023, "MIME-Version: 1.0\n\nhello\n", "user-data-without-parts"),
        (bottlerocket, "[settings.network]\nhttps-proxy = 'http://other:1'\n", "user-data-set-twice"),
        (bottlerocket, "[settings.network]\nno-proxy = ['a']\n", "user-data-set-twice"),
        (
            bottlerocket,
            "[[settings.container-registry.mirrors]]\nregistry = 'docker.io'\nendpoint = ['https://a']\n",
            "user-data-set-twice",
        ),
        (bottlerocket, "settings = { network = { hostname = 'a' } }\n", "user-data-closed-table"),
        (bottlerocket, SCRIPT, "user-data-not-toml"),
    ],
)
def test_what_cannot_be_kept_is_refused(make: Any, own: str, code: str) -> None:
    with pytest.raises(UserDataError, match=code) as refused:
        make(EGRESS, own)
    assert finding(refused.value.code, "key", None, **refused.value.words).fix


def test_what_does_not_concern_the_proxy_stays() -> None:
    other = CONFIG.replace("localStorage: {strategy: RAID0}", "environment: {default: {TZ: UTC}, kubelet: {A: b}}")
    assert parts(al2023(EGRESS, other))[-1][1] == other
    assert parts(al2023(EGRESS, "- a list\n"))[-1][0] == "text/x-shellscript"
    here = f"#!/bin/sh\ncat > /etc/eks/nodeadm.d/mine.yaml <<'END'\n{CONFIG}END\n"
    assert parts(al2023(EGRESS, here))[-1] == ("text/x-shellscript", here)


def test_node_configs_of_a_users_own() -> None:
    assert user_data.node_configs(ARCHIVE) == user_data.node_configs(CONFIG) == [CONFIG]
    assert user_data.node_configs('{"kind": "NodeConfig"}') == ['{"kind": "NodeConfig"}']
    assert user_data.node_configs(SCRIPT) == user_data.node_configs("") == []


def test_bottlerocket_has_settings_for_it() -> None:
    told = tomllib.loads(bottlerocket(EGRESS))["settings"]
    assert told["network"] == {"https-proxy": "http://p:2", "no-proxy": ["localhost", ".svc"]}
    (bundle,) = told["pki"].values()
    assert bundle == {"data": base64.b64encode(ROOT.encode()).decode(), "trusted": True}
    assert told["container-registry"]["mirrors"] == [
        {"registry": "docker.io", "endpoint": ["https://mirror.example.com/v2/hub"]},
        {"registry": "ghcr.io", "endpoint": ["https://mirror.example.com"]},
    ]
    assert "network" not in tomllib.loads(bottlerocket(Egress(certificates=[ROOT])))["settings"]


@pytest.mark.parametrize(
    "own",
    [
        "[settings.kubernetes]\nkube-api-qps = 30",
        "[settings.network]\nhostname = 'a' # its own\n\n[settings.pki.mine]\ndata = 'eA=='\ntrusted = true\n",
        "[ settings . network ]",
        "[settings]\nmotd = 'hello'\n[settings.network]\n\nhostname = 'a'\n[settings.kernel]\nlockdown = 'integrity'\n",
        "[[settings.container-registry.mirrors]]\nregistry = 'quay.io'\nendpoint = ['https://a']\n",
        "",
    ],
)
def test_tables_of_bottlerocket_hold_both(own: str) -> None:
    theirs, both = tomllib.loads(own).get("settings", {}), tomllib.loads(bottlerocket(EGRESS, own))["settings"]
    assert both["network"] == {
        **theirs.get("network", {}),
        "https-proxy": "http://p:2",
        "no-proxy": ["localhost", ".svc"],
    }
    assert len(both["pki"]) == 1 + len(theirs.get("pki", {}))
    mirrors = [one["registry"] for one in both["container-registry"]["mirrors"]]
    assert mirrors == [*(["quay.io"] if "quay.io" in own else []), "docker.io", "ghcr.io"]
    assert all(both[name] == value for name, value in theirs.items() if name in ("kubernetes", "motd", "kernel"))


def test_families() -> None:
    assert family({"amiSelectorTerms": [{"alias": "al2023@latest"}]}) == "al2023"
    assert family({"amiSelectorTerms": [{"alias": "bottlerocket@v1.40.0"}], "amiFamily": "Custom"}) == "custom"
    assert family({"amiSelectorTerms": [{"id": "ami-1"}], "amiFamily": "AL2023"}) == "al2023"
    assert family({"amiSelectorTerms": "wrong"}) == family({}) == ""
    custom = {"amiFamily": "Custom", "userData": SCRIPT}
    assert node_class_user_data(custom, EGRESS) == SCRIPT


def test_what_ec2_would_refuse_is_refused() -> None:
    spec = {"amiFamily": "AL2023", "userData": SCRIPT + "#" * user_data.LIMIT}
    with pytest.raises(UserDataError, match="user-data-too-long"):
        node_class_user_data(spec, PROXY)
