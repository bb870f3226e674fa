"""The subscription on the wire, for a controller that knows nothing of the rehearsal."""
