"""The AWS provider stand-in, call by call, as provider_aws_steps.yaml lists it; each precondition is broken once."""

from __future__ import annotations

import base64
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from karpstack.rehearsal.attachment.resource import Created, Properties, RefusedError
from karpstack.rehearsal.aws.invokes import invokes
from karpstack.rehearsal.aws.resource import ROWS
from karpstack.rehearsal.cluster.charts import Chart
from karpstack.rehearsal.timing import Timing
from tests.unit.rehearsal.aws_world import document, trust
from tests.unit.rehearsal.provider_aws_world import Surroundings, World, open_world
from tests.unit.rehearsal.steps import Row, Steps, cases

TOKENS = {token.rpartition(":")[2]: token for token in ROWS}
SCRIPT = "#!/bin/sh\necho Hello\n"
ARCHIVE = f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\n{SCRIPT}\n--b--\n'


class CodedError(Exception):
    """A refusal of the stand-in, with AWS's code where there is one."""

    def __init__(self, error: RefusedError) -> None:
        super().__init__(str(error))
        found = re.search(r"api error ([\w.]+)|(InvalidSubnetID\.NotFound)", str(error))
        self.code = found[0].removeprefix("api error ") if found else "RefusedError"


class Type:
    """The calls of one type: the resource that was made last."""

    def __init__(self, world: World, token: str) -> None:
        self._world, self._token = world, token
        self._inputs: Properties = {}
        self._made = Created("", {})

    def create(self, /, **inputs: Any) -> Properties:
        self._made = self._tried(partial(self._world.create, self._token, **inputs))
        self._inputs = inputs
        return {**self._made.outputs, "id": self._made.id}

    def update(self, /, **changed: Any) -> Properties:
        inputs = {**self._inputs, **changed}
        outputs: Properties = self._tried(partial(self._world.update, self._token, self.read_now(), **inputs))
        self._made, self._inputs = Created(self._made.id, outputs), inputs
        return outputs

    def read_now(self) -> Created:
        return Created(self._made.id, self.read() or self._made.outputs)

    def read(self) -> Properties | None:
        return self._world.read(self._token, self._made)

    def delete(self) -> None:
        self._tried(partial(self._world.delete, self._token, self._made))

    def _tried(self, call: Any) -> Any:
        try:
            return call()
        except RefusedError as error:
            raise CodedError(error) from error


class Place:
    """A simulated account, and what the rows call beside types and AWS's services."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world, self._folder = world, folder
        self.account, self._clusters = world.account, world.clusters
        self.types = {name: Type(world, token) for name, token in TOKENS.items()}

    def known(self) -> dict[str, Any]:
        """What the rows name as `<...>`."""
        policy = document(Action="ec2:RunInstances", Resource="*")
        return {
            **{name: partial(self._world.surroundings, name) for name in Surroundings.makers},
            "script": base64.b64encode(SCRIPT.encode()).decode(),
            "archive": base64.b64encode(ARCHIVE.encode()).decode(),
            "wide policy": json.dumps(json.loads(policy), indent=2000),
            "trust of nobody": trust("ec2.amazonaws.com").replace("Principal", "Nobody"),
            "spelt trust of ec2": trust("ec2.amazonaws.com").replace(" ", "\n  "),
        }

    def root(self, name: str) -> Any:
        """What the first part of a call names: a type, something of this place, or a service."""
        own = {"place": self, "account": self.account, "call": self, **self.types}
        return own[name] if name in own else self.account.client(name)

    def __getattr__(self, name: str) -> Any:
        call = next(call for token, call in invokes(self.account).items() if token.endswith(f":{name}"))
        return lambda **arguments: call(arguments)

    # The control plane.

    @property
    def _plane(self) -> Any:
        return self._clusters.running["rehearsed"]

    def started(self) -> list[list[str]]:
        return [[one[key] for key in ("name", "version", "service_cidr", "issuer")] for one in self._clusters.started]

    def is_bound(self) -> bool:
        return self.account.cloud("rehearsed").cluster is self._plane

    def running(self) -> list[str]:
        return [*self._clusters.running]

    def upgraded(self) -> list[list[str]]:
        return [[*one] for one in self._clusters.upgraded]

    def of_version(self, version: str) -> None:
        self.account.eks.cluster("rehearsed").version = version

    def fail(self) -> None:
        self._clusters.fails = True

    def refuse(self, why: str) -> None:
        def start(name: str, **options: Any) -> None:
            raise ValueError(why)

        self._clusters.start = start

    def stop(self) -> None:
        self._clusters.stop("rehearsed")

    def plane(self, **attributes: Any) -> None:
        vars(self._plane).update(attributes)

    def objects(self) -> list[str]:
        return sorted("/".join(key) for key in self._plane.objects)

    def object(self, kind: str, name: str) -> Any:
        return self._plane.objects[kind, name]

    def rendered(self) -> list[Any]:
        return list(self._plane.rendered)

    def drained(self) -> list[str]:
        return list(self._plane.drained)

    def nodes(self) -> Any:
        return dict(self._plane.nodes)

    def node_names(self) -> list[str]:
        return sorted(self._plane.nodes)

    def left_of(self, before: list[str]) -> list[int]:
        """How many nodes are left of those before, and how many there are."""
        now = set(self._plane.nodes)
        return [len(now & set(before)), len(now)]

    def chart(self) -> None:
        """The EBS CSI driver's chart, with a schema."""
        schema = {"type": "object", "additionalProperties": False, "properties": {"controller": {"type": "object"}}}
        (self._folder / "values.schema.json").write_text(json.dumps(schema))
        self._plane.chart = Chart("aws-ebs-csi-driver", "2.62.0", self._folder)

    # The account.

    def subnet(self, number: int, zone: str) -> str:
        vpc = self.account.client("eks").describe_cluster(name="rehearsed")["cluster"]["resourcesVpcConfig"]["vpcId"]
        return self._world.subnet(vpc, number, zone).id

    def first(self, of: list[str]) -> str:
        return of[0]

    def instances(self, key: str) -> list[str]:
        states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        found = self.account.client("ec2").describe_instances(Filters=states)["Reservations"]
        return sorted(instance[key] for reservation in found for instance in reservation["Instances"])

    def user_data(self) -> list[str]:
        ask = partial(self.account.client("ec2").describe_instance_attribute, Attribute="userData")
        return [ask(InstanceId=instance)["UserData"]["Value"] for instance in self.instances("InstanceId")]

    def without_routes(self) -> None:
        ec2 = self.account.client("ec2")
        for table in ec2.describe_route_tables()["RouteTables"]:
            for route in table["Routes"]:
                if (destination := route["DestinationCidrBlock"]) == "0.0.0.0/0":
                    ec2.delete_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock=destination)

    def driver_role(self) -> str:
        role = self._world.role("pods.eks.amazonaws.com", "ebs-csi", "sts:AssumeRole", "sts:TagSession")
        policy = "arn:aws:iam::aws:policy/AmazonEBSCSIDriverPolicyV2"
        self._world.create("aws:iam/rolePolicyAttachment:RolePolicyAttachment", role="ebs-csi", policyArn=policy)
        return str(role.outputs["arn"])

    def web_role(self, service_account: str, policy: str) -> str:
        """A role that pods of a service account take by the cluster's issuer (IRSA), with the provider."""
        issuer = self.account.eks.issuer("rehearsed")
        url = {"url": issuer, "clientIdLists": ["sts.amazonaws.com"]}
        arn = self._world.create("aws:iam/openIdConnectProvider:OpenIdConnectProvider", **url).id
        name = issuer.removeprefix("https://")
        condition = {"StringEquals": {f"{name}:sub": f"system:serviceaccount:kube-system:{service_account}"}}
        made = self._world.create(
            "aws:iam/role:Role",
            name=service_account,
            assumeRolePolicy=document(
                Principal={"Federated": arn},
                Action="sts:AssumeRoleWithWebIdentity",
                Condition=condition,
            ),
            managedPolicyArns=[f"arn:aws:iam::aws:policy/{policy}"],
        )
        return str(made.outputs["arn"])

    def without_provider(self) -> None:
        iam = self.account.client("iam")
        for one in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]:
            iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=one["Arn"])

    def allows(self, role: str, action: str) -> bool:
        found = self.account.roles.by_name(role)
        return bool(self.account.roles.allows(found, action))

    def way_out(self, subnet: str) -> str:
        """What the nodes of a subnet lack; empty if they reach the internet."""
        return str(self.account._view.missing_route(subnet))

    def attach_ten(self, role: str) -> list[str]:
        policy = document(Action="ec2:RunInstances", Resource="*")
        made = [
            self._world.create("aws:iam/policy:Policy", name=f"policy-{one}", policy=policy).id for one in range(10)
        ]
        attach = partial(self._world.create, "aws:iam/rolePolicyAttachment:RolePolicyAttachment", role=role)
        return [attach(policyArn=arn).id for arn in made]

    def new_versions(self, count: int) -> Any:
        for one in range(count):
            policy = document(Action=["ec2:RunInstances", f"ec2:Describe{one}"], Resource="*")
            outputs = self.types["Policy"].update(policy=policy)
        return outputs


@pytest.mark.parametrize("rows", cases("provider_aws_steps.yaml"))
def test_calls_are_answered_as_the_provider_answers_them(tmp_path: Path, rows: list[Row]) -> None:
    with open_world(tmp_path, timing=Timing(last_log_lines=0.05)) as world:
        place = Place(world, tmp_path)
        Steps(place.root, place.known()).run(rows)


def test_a_log_group_that_was_kept_stays_as_it_is(tmp_path: Path) -> None:
    with open_world(tmp_path, timing=Timing(last_log_lines=0)) as world:
        token = TOKENS["LogGroup"]
        group = world.create(token, name="/aws/eks/rehearsed/cluster", retentionInDays=30)
        world.delete(TOKENS["Cluster"], world.cluster(enabledClusterLogTypes=["audit"]))
        assert world.read(token, group) == group.outputs
