"""One deliberate violation each."""
