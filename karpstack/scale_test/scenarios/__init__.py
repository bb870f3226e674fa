"""Scenario files: their format, and which of them suit a stack."""
