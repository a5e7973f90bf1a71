"""Users and characters to test with: signed with the target's secret if given, else from the descriptor's list."""

import hashlib
import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.check.finding import NotObservable


@dataclass(frozen=True)
class User:
    id: str
    bearer: str


@dataclass(frozen=True)
class Character:
    id: str
    user: User


class Identities:
    """Hands out users, each once."""

    def __init__(self, credentials: Mapping[str, Any]) -> None:
        self._secret: str | None = credentials.get("auth_secret")
        self._ready: list[dict[str, Any]] = list(credentials.get("identities", []))

    @property
    def minted(self) -> bool:
        return self._secret is not None

    def user(self) -> User:
        """Returns a user that no check has had yet. Raises NotObservable when the descriptor's list is used up."""
        if self._secret is not None:
            return self.mint(f"u-{uuid.uuid4()}")
        if not self._ready:
            raise NotObservable("[credentials] auth_secret, or more entries in [credentials] identities")
        entry = self._ready.pop(0)
        return User(entry["user"], entry["bearer"])

    def mint(self, user: str) -> User:
        """Returns the user with this id and a bearer signed with the secret."""
        signature = hmac.new(str(self._secret).encode(), user.encode(), hashlib.sha256).hexdigest()
        return User(user, f"hf1.{user}.{signature}")
