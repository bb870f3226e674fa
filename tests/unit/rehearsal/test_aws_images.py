"""Machine images and the parameters that name them."""

from __future__ import annotations

from karpstack.rehearsal.aws.account import Account
from karpstack.rehearsal.aws.ec2.images import images

#: The paths that Karpenter builds, from pkg/providers/amifamily of karpenter-provider-aws 1.14.
LATEST = [
    *(
        f"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/{arch}/{variant}/recommended/image_id"
        for arch, variants in (("x86_64", ("standard", "nvidia", "neuron")), ("arm64", ("standard", "nvidia")))
        for variant in variants
    ),
    *(
        f"/aws/service/bottlerocket/aws-k8s-1.36{variant}/{arch}/latest/image_id"
        for arch in ("x86_64", "arm64")
        for variant in ("", "-nvidia")
    ),
]


def test_ids_are_distinct_and_well_formed() -> None:
    ids = [image.id for image in images()]
    assert len(set(ids)) == len(ids) == 3 * 2 * (5 + 4)
    assert all(len(name) == len("ami-") + 17 for name in ids)


def test_every_alias_resolves_to_an_available_image(aws: Account) -> None:
    ssm, ec2 = aws.client("ssm"), aws.client("ec2")
    for path in LATEST:
        name = ssm.get_parameter(Name=path)["Parameter"]["Value"]
        image = ec2.describe_images(Filters=[{"Name": "image-id", "Values": [name]}])["Images"][0]
        assert image["State"] == "available"
        assert image["Architecture"] == ("arm64" if "arm64" in path else "x86_64")
        assert ("nvidia" in image["Name"]) == ("nvidia" in path)
        assert image["ImageOwnerAlias"] == "amazon"


def test_a_published_release_is_the_latest_until_the_next_one(aws: Account) -> None:
    ssm, ec2 = aws.client("ssm"), aws.client("ec2")

    def latest() -> list[tuple[str, str]]:
        ids = [ssm.get_parameter(Name=path)["Parameter"]["Value"] for path in LATEST]
        return [(name, str(ec2.describe_images(ImageIds=[name])["Images"][0]["CreationDate"])[:10]) for name in ids]

    before = latest()
    assert aws.images.publish() == ["al2023@v20260814", "bottlerocket@1.63.0"]
    first = latest()
    assert aws.images.publish() == ["al2023@v20260821", "bottlerocket@1.64.0"]
    second = latest()
    assert [{day for _, day in found} for found in (before, first, second)] == [
        {"2026-08-07", "2026-08-12"},
        {"2026-08-14", "2026-08-19"},
        {"2026-08-21", "2026-08-26"},
    ]
    assert len({name for found in (before, first, second) for name, _ in found}) == 3 * len(LATEST)
    # What is recommended to node groups is one image of each kind, too; what was it before can still be pinned.
    assert sum(image.latest for image in aws.images.known.values()) == 3 * len(LATEST)
    path = "/aws/service/bottlerocket/aws-k8s-1.36/x86_64/1.62.0/image_id"
    assert ssm.get_parameter(Name=path)["Parameter"]["Value"] in {name for name, _ in before}


AL2023 = (
    "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/"
    "amazon-eks-node-al2023-x86_64-standard-1.34-{}/image_id"
)
