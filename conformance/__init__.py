"""The suite: one folder a spec. It never imports the reference servers."""
