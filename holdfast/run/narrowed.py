"""By which options a run looks at less than its whole suite: a green end of such a run says so."""

from collections.abc import Collection, Iterator

from holdfast.run.options import RunOptions


def narrowed(options: RunOptions, deselected: Collection[str], *, budget: bool) -> list[str]:
    """Returns each way in which the user narrowed the run; `budget` is whether the budget left a check out."""
    return list(_ways(options, deselected, budget=budget))


def _ways(options: RunOptions, deselected: Collection[str], *, budget: bool) -> Iterator[str]:
    if options.only:
        yield " ".join(f"--only {name}" for name in options.only)
    if options.level:
        yield f"--level {options.level}"
    if budget:
        yield f"--budget {options.budget}"
    if options.last_failed:
        yield "--last-failed"
    elif deselected:
        yield f"{len(deselected)} {'check' if len(deselected) == 1 else 'checks'} not selected"
