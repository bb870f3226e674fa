"""Tests with the real engines. A package, so that the stack which they share ends with them and not with the run."""
