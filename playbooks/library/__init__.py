"""Modules that the roles call: thin, the logic is in scale_test."""
