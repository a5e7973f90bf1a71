"""Tests of the admission suite itself."""
