"""Credentials (spec 7): bearer tokens of the form hf1.<userId>.<hex HMAC-SHA256(secret, userId)>."""

import hashlib
import hmac
import re

_USER_ID = re.compile(r"[\x21-\x7e]{1,128}")


class Identity:
    def __init__(self, auth_secret: str, admin_token: str) -> None:
        self._secret = auth_secret.encode()
        self._admin_token = admin_token.encode()

    def authenticate(self, authorization: str) -> str | None:
        """Returns the user id, or None for missing, malformed or wrong credentials."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.startswith("hf1."):
            return None
        user_id, _, signature = token[4:].rpartition(".")
        if not _USER_ID.fullmatch(user_id):
            return None
        return user_id if hmac.compare_digest(self.sign(user_id), signature.encode()) else None

    def sign(self, user_id: str) -> bytes:
        return hmac.new(self._secret, user_id.encode(), hashlib.sha256).hexdigest().encode()

    def is_admin(self, presented: str) -> bool:
        return hmac.compare_digest(self._admin_token, presented.encode())
