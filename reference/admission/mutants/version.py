"""Violations of the rows about version gating."""

import re

from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.settings import Settings

_SEMANTIC = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(-.+)?")


def _numbers(build: str) -> tuple[int, ...] | None:
    """Returns major, minor and patch of a semantic version, or None for any other text."""
    found = _SEMANTIC.fullmatch(build)
    return tuple(map(int, found.groups()[:3])) if found else None


violation("AD-VER-01", 1, "The build is recorded but not compared.", lua={"build_current": "return nil"})


@violates("AD-VER-01", 2, "Comparison is 'at least' on the semantic version.")
class AtLeast(Rules):
    def build_ok(self, body: str | None, header: str | None) -> bool:
        required = _numbers(self.settings.current_client_build)
        if required is None:
            return super().build_ok(body, header)
        sent = [_numbers(build) for build in (body, header) if build is not None]
        return bool(sent) and all(build is not None and build >= required for build in sent)


@violates("AD-VER-01", 3, "A missing build skips the check.")
class MissingIsFine(Rules):
    def build_ok(self, body: str | None, header: str | None) -> bool:
        return (body is None and header is None) or super().build_ok(body, header)


@violates("AD-VER-01", 4, "The header wins over a wrong body value.")
class HeaderWins(Rules):
    def build_ok(self, body: str | None, header: str | None) -> bool:
        return super().build_ok(None if header is not None else body, header)


violation(
    "AD-VER-02",
    1,
    "The required build is a constant in the code.",
    settings=lambda _: {"current_client_build": Settings.current_client_build},
)


@violates("AD-VER-02", 2, "Values go through a semantic-version parser that fails on a hash.")
class Parsed(Rules):
    def build_ok(self, body: str | None, header: str | None) -> bool:
        parsed = _numbers(self.settings.current_client_build)
        return parsed is not None and super().build_ok(body, header)
