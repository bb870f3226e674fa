"""What writes the data of karpstack/karpenter from the pinned engines: `make facts`. No command needs it."""
