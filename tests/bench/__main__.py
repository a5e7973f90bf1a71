"""python -m tests.bench: what Holdfast costs, against a peer in the same run. Exit 1 when an aim is missed."""

# ruff: noqa: T201 - it reports on its standard output

import sys

from tests.bench import admit, noop

LEAST_RATIO = 0.35
MOST_SECONDS = 0.050


def main() -> int:
    ratio, rounds = admit.median_ratio()
    for http, direct in rounds:
        print(f"  admit, {admit.IN_FLIGHT} in flight: {http:7.0f} /s through HTTP, {direct:7.0f} /s without")
    print(f"admit through HTTP against without: {ratio:.2f} (aim: at least {LEAST_RATIO})")
    seconds = noop.cpu_per_check()
    print(f"CPU of a check that does nothing: {seconds * 1000:.1f} ms (aim: at most {MOST_SECONDS * 1000:.0f} ms)")
    return 0 if ratio >= LEAST_RATIO and seconds <= MOST_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
