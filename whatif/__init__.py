"""What a change does: judged by the timeline of its rehearsal."""
