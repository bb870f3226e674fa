"""A pull request, rehearsed: which stacks it touches, what their review and their what-if say, in one comment."""
