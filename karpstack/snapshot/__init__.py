"""A cluster as a file: what scheduling and disruption of its pods depend on, and nothing else of it."""
