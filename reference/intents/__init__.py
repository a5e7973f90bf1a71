"""Reference server of the spec `intents`: an API that enqueues, and a worker that is the sole owner of leases."""
