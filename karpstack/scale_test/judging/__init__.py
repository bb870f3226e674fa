"""From a timeline to assertions: replay it, see whether a step has ended, judge it."""
