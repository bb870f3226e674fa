"""Modules that the roles call: thin, the logic is in module_utils."""
