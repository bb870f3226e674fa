"""EventBridge: rules and targets, and the bus that obeys them."""
