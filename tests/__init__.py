"""The tests, tier by tier: CONTRIBUTING.md has what each may do."""
