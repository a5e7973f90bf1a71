"""Load campaigns and their judge."""
