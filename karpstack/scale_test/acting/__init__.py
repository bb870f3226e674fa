"""What a step breaks on purpose, and what must not be left in the cloud afterwards."""
