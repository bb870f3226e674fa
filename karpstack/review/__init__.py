"""The review as a document: what a preview would create, what the pack finds in it, what it costs, who may what."""
