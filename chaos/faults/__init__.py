"""Faults, each with the receipt that proves it: on a link, on a node, on the Redis. `canary` looks at them."""
