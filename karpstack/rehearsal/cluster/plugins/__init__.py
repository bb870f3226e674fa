"""The clouds' plugins that make credentials for kubectl; this folder is in the PATH of a rehearsed stack's commands."""
