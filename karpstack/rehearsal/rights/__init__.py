"""Which rights a rehearsal's controller used of those that its stack gave it, and which were never needed."""
