"""A model of the whole spec to walk over, and the world that performs its commands. Read it beside the spec."""
