"""KMS: a symmetric key, for the encryption of a cluster's secrets, and its alias."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rehearsal.attachment.resource import Failure, Properties
from rehearsal.aws.resource import AwsResource, TagCalls, api, properties
from rehearsal.aws.tags import pairs, unpaired

#: How often KMS makes new key material when nobody says so.
ROTATION_DAYS = 365
_DELETED = ("PendingDeletion", "PendingReplicaDeletion")


class Key(AwsResource):
    """A key. ID: the key's. Deleting it schedules its end, which is as gone as a key gets."""

    token = "aws:kms/key:Key"
    title, service = "KMS Key", "kms"
    tag_calls = TagCalls("KeyId", pair=("TagKey", "TagValue"))
    accepts = frozenset({"description", "enableKeyRotation", "deletionWindowInDays", "policy", "tags"})
    computed = frozenset({"description", "policy"})
    defaults: ClassVar[Mapping[str, Any]] = {
        "bypassPolicyLockoutSafetyCheck": False,
        "customerMasterKeySpec": "SYMMETRIC_DEFAULT",
        "enableKeyRotation": False,
        "isEnabled": True,
        "keyUsage": "ENCRYPT_DECRYPT",
    }
    unset: ClassVar[Mapping[str, Any]] = {
        "customKeyStoreId": "",
        "multiRegion": False,
        "rotationPeriodInDays": 0,
        "xksKeyId": "",
    }

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """The waiting period that KMS takes."""
        days = inputs.get("deletionWindowInDays")
        if isinstance(days, int) and not 7 <= days <= 30:
            yield Failure("deletionWindowInDays", f"expected a number of days in the range (7 - 30), got {days}")

    def make(self, inputs: Properties) -> str:
        """create_key."""
        created = self.client.create_key(
            **api(inputs, ("description", "policy")), Tags=pairs(self.tags(inputs), "TagKey", "TagValue")
        )
        return str(created["KeyMetadata"]["KeyId"])

    def complete(self, id: str, inputs: Properties, timeout: float) -> None:
        """Rotation is a switch of its own."""
        if inputs["enableKeyRotation"]:
            self.client.enable_key_rotation(KeyId=id)

    def look(self, id: str, state: Properties) -> Properties | None:
        """Metadata, rotation, policy and tags."""
        metadata = self.client.describe_key(KeyId=id)["KeyMetadata"]
        if metadata["KeyState"] in _DELETED:
            return None
        rotated = self.client.get_key_rotation_status(KeyId=id)["KeyRotationEnabled"]
        return {
            **properties(metadata, ("description", "arn", "keyId")),
            "isEnabled": metadata["Enabled"],
            "enableKeyRotation": rotated,
            "rotationPeriodInDays": ROTATION_DAYS if rotated else None,
            "policy": self.client.get_key_policy(KeyId=id, PolicyName="default")["Policy"],
            "tags": unpaired(self.client.list_resource_tags(KeyId=id)["Tags"], "TagKey", "TagValue"),
        }

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """Each property has its own call; the waiting period is needed at deletion only."""
        differs = self.differs(old, new)
        if "description" in differs:
            self.client.update_key_description(KeyId=id, Description=new.get("description", ""))
        if "policy" in differs and new.get("policy"):
            self.client.put_key_policy(KeyId=id, PolicyName="default", Policy=new["policy"])
        if "enableKeyRotation" in differs:
            turn = "enable" if new.get("enableKeyRotation") else "disable"
            getattr(self.client, f"{turn}_key_rotation")(KeyId=id)

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """schedule_key_deletion, once."""
        if self.client.describe_key(KeyId=id)["KeyMetadata"]["KeyState"] not in _DELETED:
            self.client.schedule_key_deletion(KeyId=id, PendingWindowInDays=state.get("deletionWindowInDays") or 30)


class Alias(AwsResource):
    """A name for a key. ID: the name, `alias/...`."""

    token = "aws:kms/alias:Alias"
    title, service = "KMS Alias", "kms"
    accepts = frozenset({"name", "targetKeyId"})
    replace_on = frozenset({"name"})
    required = frozenset({"targetKeyId"})
    name_property, name_limit = "name", 256
    unset: ClassVar[Mapping[str, Any]] = {"namePrefix": ""}

    def autoname(self, inputs: Properties, old: Mapping[str, Any], proposed: str | None) -> Properties:
        """An automatic name has KMS's prefix, too, which the logical name may begin with already."""
        return super().autoname(inputs, old, proposed and f"alias/{proposed.removeprefix('alias/')}")

    def examine(self, inputs: Properties) -> Iterator[Failure]:
        """KMS wants a prefix and keeps one for itself."""
        name = inputs["name"]
        if isinstance(name, str) and (not name.startswith("alias/") or name.startswith("alias/aws/")):
            yield Failure(
                "name",
                f"{name!r} must begin with 'alias/' and be comprised of only [a-zA-Z0-9/_-], and "
                "'alias/aws/' is AWS's own; put alias/ before it",
            )

    def make(self, inputs: Properties) -> str:
        """create_alias."""
        self.client.create_alias(AliasName=inputs["name"], TargetKeyId=inputs["targetKeyId"])
        return str(inputs["name"])

    def look(self, id: str, state: Properties) -> Properties | None:
        """Find it among all aliases."""
        for page in self.client.get_paginator("list_aliases").paginate():
            for alias in page["Aliases"]:
                if alias["AliasName"] == id:
                    key = alias["TargetKeyId"]
                    return {
                        "name": id,
                        "arn": alias["AliasArn"],
                        "targetKeyArn": self.arn("kms", f"key/{key}"),
                        "targetKeyId": state["targetKeyId"] if str(state.get("targetKeyId")).endswith(key) else key,
                    }
        return None

    def change(self, id: str, old: Properties, new: Properties, timeout: float) -> None:
        """update_alias."""
        self.client.update_alias(AliasName=id, TargetKeyId=new["targetKeyId"])

    def remove(self, id: str, state: Properties, timeout: float) -> None:
        """delete_alias."""
        self.client.delete_alias(AliasName=id)
