"""Pulumi resource providers that the engine attaches to: they translate and delegate, and hold no state."""
