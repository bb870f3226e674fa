"""Newer facts, got with the user's own read-only credentials: which calls fill which file, and the command."""
