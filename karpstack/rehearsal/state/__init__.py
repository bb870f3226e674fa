"""What a rehearsal keeps on disk: whose a folder is, who works on it, and records that are whole or not there."""
