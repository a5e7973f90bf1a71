"""One result model and what renders it."""
