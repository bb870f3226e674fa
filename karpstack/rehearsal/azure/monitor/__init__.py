"""What Azure Monitor is told to keep."""
