"""What a shell offers while a command line is typed. `holdfast --install-completion` teaches it to the shell."""

from collections import Counter

from holdfast.spec.catalogue import builtin, builtin_keys


def specs(incomplete: str) -> list[str]:
    return [key for key in builtin_keys() if key.startswith(incomplete.lower())]


def ids(incomplete: str) -> list[tuple[str, str]]:
    """Groups first, then the requirements of a group once it is clear which one is meant.

    They come in the letters that were typed, small or not: a shell takes no word that begins otherwise.
    """
    rows = [row for key in builtin_keys() for row in builtin(key) if row.id.startswith(incomplete.upper())]
    groups = Counter(row.id.rpartition("-")[0] for row in rows)
    if len(groups) > 1:
        found = [(group, f"{number} requirements") for group, number in groups.items()]
    else:
        found = [(row.id, row.title) for row in rows]
    return [(id_.lower() if incomplete.islower() else id_, said) for id_, said in found]
