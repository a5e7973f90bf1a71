"""AuthN and AuthZ (3.1 step 1): bearer tokens compared in full, scopes compared as whole words."""

import hmac

from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.settings import Settings, Token

READ = "v3:read"
WRITE = "v3:write"
ADMIN = "v3:admin"
IMPLIED_BY = {READ: {WRITE, ADMIN, "v3:*", "*"}, WRITE: {ADMIN, "v3:*", "*"}, ADMIN: {"v3:*", "*"}}


class Principals:
    def __init__(self, settings: Settings) -> None:
        self.known = settings.known_tokens

    def authenticate(self, authorization: str, query: dict[str, str]) -> Token:  # noqa: ARG002  # never read; a seam
        """Returns the holder of the token; raises Refusal with 401. A token in the URL does not count."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer" and (found := self.find(given.strip())) is not None:
            return found
        raise Refusal("UNAUTHORIZED", headers={"WWW-Authenticate": "Bearer"})

    def find(self, given: str) -> Token | None:
        """Returns the token that is equal to the given text. All are compared, so that time tells nothing."""
        found = [each for each in self.known if self.same(each.text, given)]
        return found[0] if found else None

    def same(self, known: str, given: str) -> bool:
        return hmac.compare_digest(known.encode(), given.encode(errors="surrogateescape"))

    def authorize(self, principal: Token, scope: str) -> None:
        """Raises Refusal with 403 unless the scope, or a broader one, is among those of the principal."""
        if not self.allows(principal.scopes, scope):
            raise Refusal("FORBIDDEN", f"The scope {scope} is needed.")

    def allows(self, scopes: frozenset[str], scope: str) -> bool:
        return bool(scopes & {scope, *IMPLIED_BY[scope]})
