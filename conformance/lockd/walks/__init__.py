"""The model of lockd that walks go over, and the world that performs their commands."""
