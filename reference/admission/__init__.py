"""Reference server of the spec `admission`: character session admission."""
