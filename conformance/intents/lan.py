"""Clients that a proxy may name (section 6): addresses inside the LAN and outside, and headers that must not count."""

# Where the suite sends from to a target that we start.
HERE = "127.0.0.1"
PUBLIC, INSIDE = "8.8.8.8", "10.0.0.1"
PRIVATE = ("10.10.55.123", "172.16.0.9", "192.168.1.20")
NEVER_INSIDE = (
    f" {PUBLIC} ", f",{PUBLIC}", "2001:db8::1", f"::ffff:{PUBLIC}",
    "172.32.0.1", "192.169.0.1", "11.0.0.1", "100.64.0.1",
)  # fmt: skip
ALWAYS_INSIDE = ("::ffff:10.0.0.1", "172.31.255.254", "192.168.255.1", "10.255.255.255")
OTHER_HEADERS = {"X-Real-IP": INSIDE, "Forwarded": f"for={INSIDE}", "True-Client-IP": INSIDE}
