"""Faults: links, process and Redis faults, schedules, receipts, scenarios."""
