"""A change, rehearsed: the stack with a workload on it, then `pulumi up` of the change, and what comes of it."""
