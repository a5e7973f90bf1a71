"""Reference servers: one folder a spec. They never import the suite."""
