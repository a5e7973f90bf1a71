"""Reference server of the spec `coordinator`: equal nodes on one Redis, one of which leads by a lock."""
