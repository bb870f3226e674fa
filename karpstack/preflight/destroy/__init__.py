"""What would block `pulumi destroy`, or outlive it."""
