"""What can be done with a schedule: check it, read and write it as text, draw one from a seed, carry it out."""
