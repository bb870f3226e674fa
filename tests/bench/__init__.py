"""Figures, not tests: `make bench` and its siblings. Nothing here fails when a machine is slow."""
