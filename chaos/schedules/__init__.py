"""Schedules of faults: validate them, read and write them as text, draw one from a seed, carry one out."""
