"""Text that others wrote: reading it within limits, and showing it as nothing but text."""
