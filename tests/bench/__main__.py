"""python -m tests.bench: what Holdfast costs, against a peer in the same run. Exit 1 when an aim is missed."""

# ruff: noqa: T201 - it reports on its standard output

import sys

from holdfast.target.deployment import StartError
from tests.bench import admit, generator, intents, noop, relay, walk

LEAST_RATIO = 0.35
LEAST_INTENTS = 0.4
MOST_SECONDS = 0.050
MOST_ADDED, LEAST_THROUGHPUT = 2.5, 0.6
LEAST_WALK = 0.25
LEAST_REQUESTS = 0.9
LEAST_DATAGRAMS, LEAST_SHARE = 25_000, 0.3


def main() -> int:
    ratio, rounds = admit.median_ratio()
    for http, direct in rounds:
        print(f"  admit, {admit.IN_FLIGHT} in flight: {http:7.0f} /s through HTTP, {direct:7.0f} /s without")
    print(f"admit through HTTP against without: {ratio:.2f} (aim: at least {LEAST_RATIO})")
    seconds = noop.cpu_per_check()
    print(f"CPU of a check that does nothing: {seconds * 1000:.1f} ms (aim: at most {MOST_SECONDS * 1000:.0f} ms)")
    others = [intents_are_fast(), walks_are_fast(), load_costs_little(), relay_is_fast()]
    return 0 if ratio >= LEAST_RATIO and seconds <= MOST_SECONDS and all(others) else 1


def intents_are_fast() -> bool:
    ratio, rounds = intents.median_ratio()
    for http, direct in rounds:
        print(f"  intents, {intents.IN_FLIGHT} in flight: {http:7.0f} /s through HTTP, {direct:7.0f} /s without")
    print(f"intents through HTTP against without: {ratio:.2f} (aim: at least {LEAST_INTENTS})")
    return ratio >= LEAST_INTENTS


def walks_are_fast() -> bool:
    seen = walk.compare()
    for what, cost in (("with the model", seen.model), ("the same calls by the bare driver", seen.bare)):
        print(f"  walk, {what}: {seen.steps / cost.wall:6.0f} steps /s, {seen.steps / cost.cpu:6.0f} a CPU second")
    print(f"steps a CPU second, against the bare driver's: {seen.ratio:.2f} (aim: at least {LEAST_WALK})")
    return seen.ratio >= LEAST_WALK


def load_costs_little() -> bool:
    seen, rounds = generator.compare()
    for each in rounds:
        print(f"  load: {each.ours:5.0f} requests a CPU second of our user, {each.plain:5.0f} of a plain FastHttpUser")
    told = f"{seen.ours / seen.wrk:.3f} of wrk's {seen.wrk:.0f}" if seen.wrk else "wrk is not there to compare with"
    print(f"requests a CPU second, against FastHttpUser's: {seen.ratio:.2f} (aim: at least {LEAST_REQUESTS}); {told}")
    return seen.ratio >= LEAST_REQUESTS


def relay_is_fast() -> bool:
    try:
        seen = relay.compare()
    except StartError as problem:
        print(f"the relay is compared with nothing: {problem}")
        return True
    for line in seen.rounds:
        print(f"  {line}")
    share = seen.datagrams / seen.datagrams_direct
    print(f"round trip added, against Toxiproxy's: {seen.added:.2f} (aim: at most {MOST_ADDED})")
    print(f"throughput, against Toxiproxy's: {seen.throughput:.2f} (aim: at least {LEAST_THROUGHPUT})")
    print(
        f"datagrams: {seen.datagrams:.0f} /s, {share:.2f} of a direct socket pair "
        f"(aim: {LEAST_DATAGRAMS} /s, or {LEAST_SHARE} of the pair)"
    )
    fast = seen.datagrams >= LEAST_DATAGRAMS or share >= LEAST_SHARE
    return seen.added <= MOST_ADDED and seen.throughput >= LEAST_THROUGHPUT and fast


if __name__ == "__main__":
    sys.exit(main())
