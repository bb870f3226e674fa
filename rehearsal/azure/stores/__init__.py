"""What clusters take things from that are not theirs: registries of images, vaults of secrets."""
