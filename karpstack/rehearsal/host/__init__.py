"""What a rehearsal has to do with this machine: processes, who is at the other end of a connection, limits, logs."""
