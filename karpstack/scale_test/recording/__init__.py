"""The recorder, and the timeline that it writes."""
