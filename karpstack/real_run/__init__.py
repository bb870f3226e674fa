"""A run in a real account: what it may cost, what is left of it, its removal by tag, and how it compares."""
