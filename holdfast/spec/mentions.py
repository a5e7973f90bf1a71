"""Which requirements a sentence of the catalogue names.

Sentences name rows as people write them: `TC-STEP-03`, `AD-RECON-04, -07`, `AD-STALE-02 and -03`,
`MC-SCORE-01 to -05`, or a whole group, `TC-STEP`.
"""

import re
from collections.abc import Iterator

_GROUP = r"[A-Z]{2}-[A-Z]+"
_FURTHER = rf",? (?:and |or |to )?(?:{_GROUP})?-\d\d\b"
_ROWS = re.compile(rf"\b({_GROUP})-(\d\d)\b((?:{_FURTHER})*)")
_ONE_FURTHER = re.compile(rf"(to )?({_GROUP})?-(\d\d)\b")
_WHOLE_GROUP = re.compile(rf"\b({_GROUP})\b(?!-?\d)")


def mentions(text: str, id_: str) -> bool:
    return id_ in named_in(text) or id_.rpartition("-")[0] in named_in(text)


def named_in(text: str) -> set[str]:
    """Ids of rows, and names of groups that stand without a number."""
    rows = {id_ for match in _ROWS.finditer(text) for id_ in _ids(match)}
    return rows | {match[1] for match in _WHOLE_GROUP.finditer(text)}


def _ids(match: re.Match[str]) -> Iterator[str]:
    group, number = match[1], int(match[2])
    yield f"{group}-{number:02}"
    for to, other, digits in _ONE_FURTHER.findall(match[3]):
        first = number + 1 if to and other in ("", group) else int(digits)
        group, number = other or group, int(digits)
        for each in range(first, number + 1):
            yield f"{group}-{each:02}"
