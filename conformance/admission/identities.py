"""Users and characters to test with: signed with the target's secret if given, else from the descriptor's list.

All checks of a run draw from that list, each user is with one check at a time, and comes back when the check ends; it
is not handed out again before what the check did to it (a lock, failures in the window) is over. An entry may name
characters that the target knows already as this user's; they need no registration.
"""

import hashlib
import hmac
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.check.finding import NotObservable, WronglyGiven


@dataclass(frozen=True)
class User:
    id: str
    bearer: str


@dataclass(frozen=True)
class Character:
    id: str
    user: User


@dataclass
class _Entry:
    """One user of the descriptor's list; `free_from` is when a check may have it, on our monotonic clock."""

    user: User
    characters: list[str] | None
    free_from: float = 0.0


@dataclass
class _Lent:
    """An entry that a check has, and which of its characters are left."""

    entry: _Entry
    left: list[str] | None = field(default=None)


# The list of each target, by the identity of its credentials: checks of one run share it.
_LISTS: dict[int, tuple[Mapping[str, Any], list[_Entry]]] = {}


class Identities:
    """Hands out users to one check, each once."""

    def __init__(self, credentials: Mapping[str, Any]) -> None:
        self._secret: str | None = credentials.get("auth_secret")
        self._entries = _list_of(credentials)
        self._lent: dict[str, _Lent] = {}

    @property
    def minted(self) -> bool:
        return self._secret is not None

    def user(self) -> User:
        """Returns a user that no other check has. Raises NotObservable when the descriptor's list is used up."""
        if self._secret is not None:
            return self.mint(f"u-{uuid.uuid4()}")
        entry = next((each for each in self._entries if each.free_from <= time.monotonic()), None)
        if entry is None:
            raise NotObservable("[credentials] auth_secret, or more entries in [credentials] identities")
        entry.free_from = float("inf")
        self._lent[entry.user.id] = _Lent(entry, None if entry.characters is None else list(entry.characters))
        return entry.user

    def anybody(self) -> User | None:
        """Returns a user for calls that change nothing, also one that another check has; None if we were given none."""
        if self._secret is not None:
            return self.mint(f"u-{uuid.uuid4()}")
        return self._entries[0].user if self._entries else None

    def known_character(self, user: User) -> str | None:
        """Returns a character of this user that the target knows; None if we name our own.

        Raises NotObservable when those of the descriptor are used up.
        """
        lent = self._lent.get(user.id)
        if lent is None or lent.left is None:
            return None
        if not lent.left:
            raise NotObservable("more characters in [credentials] identities")
        return lent.left.pop(0)

    def give_back(self, after: float) -> None:
        """Returns the users of this check to the list; they may be had again after `after` seconds."""
        for lent in self._lent.values():
            lent.entry.free_from = time.monotonic() + after
        self._lent.clear()

    def mint(self, user: str) -> User:
        """Returns the user with this id and a bearer signed with the secret."""
        signature = hmac.new(str(self._secret).encode(), user.encode(), hashlib.sha256).hexdigest()
        return User(user, f"hf1.{user}.{signature}")


def _list_of(credentials: Mapping[str, Any]) -> list[_Entry]:
    if id(credentials) not in _LISTS:
        entries = [_entry(number, entry) for number, entry in enumerate(credentials.get("identities", []), 1)]
        _LISTS[id(credentials)] = (credentials, entries)  # kept, so that no other object gets this identity
    return _LISTS[id(credentials)][1]


def _entry(number: int, entry: Any) -> _Entry:
    if not isinstance(entry, Mapping) or not {"user", "bearer"} <= entry.keys():
        raise WronglyGiven(f'[credentials] identities: entry {number} is none; write {{ user = "…", bearer = "…" }}')
    return _Entry(User(str(entry["user"]), str(entry["bearer"])), entry.get("characters"))
