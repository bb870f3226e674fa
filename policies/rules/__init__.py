"""The rules of the pack, one subject a file; `../__main__.py` lists those that are in force."""
