"""Rules of security groups that one resource has several of: inline blocks of a group, and `SecurityGroupRule`.

The provider sends a block with several peers as one permission, and EC2 keeps one rule for each peer. So a block is
compared rule by rule.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from karpstack.rehearsal.attachment.resource import Failure, Properties, RefusedError, has_unknowns
from karpstack.rehearsal.attachment.rows import filled
from karpstack.rehearsal.aws.resource import AwsRefusalError, AwsResource, AwsResourceWithBlocks

DIRECTIONS: Final = ("ingress", "egress")
#: Input of a block -> EC2's list of peers, and the peer's key in there.
_PEERS: Final = {
    "cidrBlocks": ("IpRanges", "CidrIp"),
    "ipv6CidrBlocks": ("Ipv6Ranges", "CidrIpv6"),
    "prefixListIds": ("PrefixListIds", "PrefixListId"),
    "securityGroups": ("UserIdGroupPairs", "GroupId"),
}
_PROTOCOLS: Final = {"all": "-1", "1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}
_WHOLE: Final = {
    "cidrBlocks": [],
    "description": "",
    "ipv6CidrBlocks": [],
    "prefixListIds": [],
    "securityGroups": [],
    "self": False,
}
_ALL_PORTS: Final = "from_port ({}) and to_port ({}) must both be 0 to use the 'ALL' \"-1\" protocol!"
_NO_PEER: Final = "a rule needs cidrBlocks, ipv6CidrBlocks, prefixListIds, self or another security group"
_TWICE: Final = "The same permission must not appear multiple times"
_IMPORT: Final = "SECURITYGROUPID_TYPE_PROTOCOL_FROMPORT_TOPORT_SOURCE[_SOURCE]*"


@dataclass(frozen=True)
class Rule:
    """One rule as EC2 keeps it: without ports where it is for all protocols."""

    protocol: str
    first: int | None
    last: int | None
    kind: str
    peer: str
    description: str

    @property
    def permission(self) -> dict[str, Any]:
        """The rule as EC2's operations take it."""
        peers, key = _PEERS[self.kind]
        described = {"Description": self.description} if self.description else {}
        ports = {} if self.first is None else {"FromPort": self.first, "ToPort": self.last}
        return {"IpProtocol": self.protocol, **ports, peers: [{key: self.peer, **described}]}


def wanted(blocks: Iterable[Mapping[str, Any]], group: str) -> list[Rule]:
    """The rules of blocks.

    Raises:
        AwsRefusalError: One is there twice.
    """
    unique = {repr(sorted(filled(one).items())): one for one in blocks}
    rules = [rule for block in unique.values() for rule in _of_block(block, group)]
    if len({replace(rule, description="") for rule in rules}) < len(rules):
        raise AwsRefusalError("InvalidParameterValue", _TWICE)
    return rules


def failures(name: str, blocks: Any) -> Iterator[Failure]:
    """What the provider refuses of blocks; unknown values are let through."""
    for block in blocks if isinstance(blocks, list) else ():
        if not isinstance(block, dict) or has_unknowns(block):
            continue
        ports = block.get("fromPort"), block.get("toPort")
        if _protocol(block) == "-1" and any(ports):
            yield Failure(name, _ALL_PORTS.format(*ports))
        if not _of_block(block, "own"):
            yield Failure(name, _NO_PEER)


def _of_block(block: Mapping[str, Any], group: str) -> list[Rule]:
    protocol, described = _protocol(block), str(block.get("description") or "")
    ports = (None, None) if protocol == "-1" else (block.get("fromPort"), block.get("toPort"))
    named = [(kind, str(peer)) for kind in _PEERS for peer in block.get(kind) or ()]
    named += [("securityGroups", group)] if block.get("self") else []
    return [Rule(protocol, *ports, kind, peer, described) for kind, peer in dict.fromkeys(named)]


def _protocol(block: Mapping[str, Any]) -> str:
    protocol = str(block.get("protocol")).lower()
    return _PROTOCOLS.get(protocol, protocol)


class GroupRules(AwsResource):
    """A resource with rules of a group."""

    def rules(self, group: str, direction: str) -> dict[Rule, str]:
        """The rules that the group has, with their IDs."""
        filters = [{"Name": "group-id", "Values": [group]}]
        found = self.client.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]
        return {_rule(one): one["SecurityGroupRuleId"] for one in found if one["IsEgress"] is (direction == "egress")}

    def change_rules(self, group: str, direction: str, drop: Iterable[Rule], add: Iterable[Rule]) -> None:
        """Revoke rules, then authorize others."""
        for verb, rules in (("revoke", drop), ("authorize", add)):
            if permissions := [rule.permission for rule in rules]:
                call = getattr(self.client, f"{verb}_security_group_{direction}")
                call(GroupId=group, IpPermissions=permissions)


class SecurityGroup(GroupRules, AwsResourceWithBlocks):
    """A security group, with the rules that stand in it. ID: sg-...

    The provider makes the rules equal to the blocks that the program has. Without blocks it lets rules alone, which
    then are other resources.
    """

    type = "aws:ec2/securityGroup:SecurityGroup"

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Find rules that the provider refuses."""
        for direction in DIRECTIONS:
            yield from failures(direction, inputs.get(direction))

    def describe(self, id: str, state: Properties) -> Properties | None:
        """The group; rules of blocks as the program wrote them, and others as blocks of their own."""
        seen = super().describe(id, state)
        for direction in DIRECTIONS:
            if seen is None or not self.describes_blocks(direction, state):
                continue
            there = self.rules(id, direction).keys()
            kept = [block for block in state.get(direction) or () if set(_of_block(block, id)) <= there]
            others = set(there).difference(*(_of_block(block, id) for block in kept))
            seen[direction] = [{**_WHOLE, **block} for block in (*kept, *_blocks(others, id))]
        return seen

    def set_blocks(self, id: str, inputs: Properties) -> None:
        """Make the rules those of the program; EC2's own goes, too."""
        for direction in DIRECTIONS:
            if (blocks := inputs.get(direction)) is not None:
                there, rules = self.rules(id, direction), wanted(blocks, id)
                drop, add = (one for one in there if one not in rules), (one for one in rules if one not in there)
                self.change_rules(id, direction, drop, add)


def _blocks(rules: Iterable[Rule], group: str) -> list[Properties]:
    """Rules as blocks: those of the same ports and description are one, as the provider has it."""
    found: dict[tuple[Any, ...], Properties] = {}
    for rule in sorted(rules, key=repr):
        ports = {"fromPort": rule.first or 0, "toPort": rule.last or 0}
        block: Properties = {"protocol": rule.protocol, **ports, "description": rule.description}
        block = found.setdefault(tuple(block.values()), block)
        if rule.peer == group:
            block["self"] = True
        else:
            block.setdefault(rule.kind, []).append(rule.peer)
    return [*found.values()]


class SecurityGroupRule(GroupRules):
    """Rules of one block, in a group that is another resource. ID: `sgrule-<number>`."""

    type = "aws:ec2/securityGroupRule:SecurityGroupRule"

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """Find what the provider refuses."""
        yield from failures("protocol", [_as_block(inputs)])
        others = inputs.get("self") is True or inputs.get("cidrBlocks")
        if isinstance(inputs.get("sourceSecurityGroupId"), str) and others:
            yield Failure("sourceSecurityGroupId", "it conflicts with cidrBlocks and self; make two rules")

    def make(self, inputs: Properties) -> str:
        """authorize_security_group_ingress or -egress."""
        group, direction = inputs["securityGroupId"], inputs["type"]
        rules = wanted([_as_block(inputs)], group)
        self.change_rules(group, direction, (), rules)
        return _id(group, direction, rules)

    def describe(self, id: str, state: Properties) -> Properties | None:
        """The rules, as they were written, as long as the group has all of them."""
        group, direction = state["securityGroupId"], state["type"]
        there = {
            replace(one, description=""): (one.description, id) for one, id in self.rules(group, direction).items()
        }
        found = [there.get(one) for one in _of_block({**_as_block(state), "description": ""}, group)]
        if not all(found):
            return None
        (description, only), *more = filter(None, found)
        source = {"sourceSecurityGroupId": group} if state.get("self") else {}
        described = {"description": description} if description or state.get("description") else {}
        return {**source, **described, "securityGroupRuleId": "" if more else only}

    def adjust(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """The description; the rules are made again, because moto describes only those of ranges in place."""
        self.remove(id, new, timeout)
        self.make(new)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """Revoke the rules that are there."""
        group, direction = state["securityGroupId"], state["type"]
        rules = _of_block({**_as_block(state), "description": ""}, group)
        there = [one for one in self.rules(group, direction) if replace(one, description="") in rules]
        self.change_rules(group, direction, there, ())

    def imported(self, id: str) -> tuple[str, Properties]:
        """By all that makes the rule: `sg-6e616f6d69_ingress_tcp_8000_8000_10.0.3.0/24`."""
        group, *rest = id.split("_")
        if not group.startswith("sg-") or len(rest) < 5 or rest[0] not in DIRECTIONS:
            raise RefusedError(f"unexpected format for ID ({id!r}), expected {_IMPORT}")
        direction, protocol, first, last, *sources = rest
        state: Properties = {
            "securityGroupId": group,
            "type": direction,
            "protocol": _PROTOCOLS.get(protocol, protocol),
        }
        state |= {"fromPort": int(first), "toPort": int(last), "self": "self" in sources}
        for source in sources:
            if source.startswith("sg-"):
                state["sourceSecurityGroupId"] = source
            elif source != "self":
                kind = (
                    "prefixListIds" if source.startswith("pl-") else "ipv6CidrBlocks" if ":" in source else "cidrBlocks"
                )
                state.setdefault(kind, []).append(source)
        return _id(group, direction, wanted([_as_block(state)], group)), state


def _as_block(inputs: Mapping[str, Any]) -> Properties:
    source = inputs.get("sourceSecurityGroupId")
    return {**inputs, "securityGroups": [source] if source else []}


def _id(group: str, direction: str, rules: Iterable[Rule]) -> str:
    made = sorted(repr(replace(rule, description="")) for rule in rules)
    return f"sgrule-{zlib.crc32(repr((group, direction, made)).encode())}"


def _rule(found: Mapping[str, Any]) -> Rule:
    """A rule as EC2 describes it."""
    peers = {
        "cidrBlocks": found.get("CidrIpv4"),
        "ipv6CidrBlocks": found.get("CidrIpv6"),
        "prefixListIds": found.get("PrefixListId"),
        "securityGroups": (found.get("ReferencedGroupInfo") or {}).get("GroupId"),
    }
    kind, peer = next((kind, peer) for kind, peer in peers.items() if peer)
    protocol = str(found["IpProtocol"])
    ports = (None, None) if protocol == "-1" else (found.get("FromPort"), found.get("ToPort"))
    return Rule(protocol, *ports, kind, str(peer), found.get("Description") or "")
