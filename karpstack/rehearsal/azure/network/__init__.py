"""Virtual networks and what lies in them."""
