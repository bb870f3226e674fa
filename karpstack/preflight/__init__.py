"""Read-only looks at a real account: before the first `pulumi up`, and before `pulumi destroy`."""
