"""One rehearsal from `up` to `down`: the daemon, the commands that run in it, and its control endpoint."""
