"""A relay for TCP and UDP that speaks the HTTP API of Toxiproxy 2.12, with faults that Toxiproxy has not."""
