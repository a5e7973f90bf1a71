"""The members of a store with Sentinels, in words: what `holdfast doctor` and `holdfast serve` say of them."""

from collections.abc import AsyncIterator
from functools import partial

from holdfast.cli.doctor_lines import Seen, tried
from holdfast.target.deployment import StoreMembers, StoreSentinel, StoreServer


def address(member: StoreServer | StoreSentinel) -> str:
    return f"127.0.0.1:{member.port}"


async def who_leads(store: StoreMembers) -> str:
    """Ask who leads now; say which server it is and which follow."""
    leader = await store.leader()
    followers = ", ".join(address(server) for server in store.replicas)
    return f"primary {address(leader)}, replicas {followers}"


def watched_by(store: StoreMembers) -> str:
    """Say under which name the Sentinels watch the primary, where they are and how many must agree."""
    places = ", ".join(address(sentinel) for sentinel in store.sentinels)
    return f"{store.plan.master_name} is watched by {places}, of which {store.plan.quorum} must agree"


async def store_looks(store: StoreMembers) -> AsyncIterator[Seen]:
    """Ask the servers and every Sentinel of a set."""
    yield await tried("store", partial(who_leads, store))
    for number, sentinel in enumerate(store.sentinels, 1):
        yield await tried(f"sentinel {number}", partial(_watches, store, sentinel))


async def _watches(store: StoreMembers, sentinel: StoreSentinel) -> str:
    seen = await sentinel.master()
    others = int(seen["num-other-sentinels"])
    if others != len(store.sentinels) - 1:
        raise RuntimeError(f"{address(sentinel)} knows {others} other sentinels of {len(store.sentinels) - 1}")
    return f"{address(sentinel)}: {seen['name']} is {seen['ip']}:{seen['port']}, quorum {seen['quorum']}"
