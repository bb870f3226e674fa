"""Resource groups."""
