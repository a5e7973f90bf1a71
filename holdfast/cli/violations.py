"""`--violate`: which mutants there are, and where one can be started at all."""

import importlib

from holdfast.spec.catalogue import CatalogueError
from holdfast.target.descriptor import Target, TargetError

_SETTING = "violate"
_DRAWN = "drawn:"


def as_written(violate: str | None) -> str | None:
    """Returns the name of a mutant as the references know it; users may write it in any case."""
    return violate if violate is None or violate.startswith(_DRAWN) else violate.upper()


def refuse_violation(target: Target, violate: str | None) -> None:
    """Raises an error with one sentence unless this target can be started as this mutant."""
    if not violate:
        return
    if _SETTING not in target.settings:
        raise TargetError(f"--violate: {target.name} has no setting `{_SETTING}`; built-in targets have one")
    also_broken(target.spec, violate)


def also_broken(key: str, violate: str) -> tuple[str, ...]:
    """The other requirements that this mutant breaks as well; an unknown mutant is refused."""
    table = importlib.import_module(f"holdfast.reference.{key}.mutants.table")
    if violate.startswith(_DRAWN):
        from holdfast.reference.shared.drawn.draw import NoSuchMutant

        try:
            table.draw().find(violate)
        except NoSuchMutant as error:
            raise CatalogueError(str(error)) from error
        return ()
    known = table.all_mutants()
    if violate in known:
        also: tuple[str, ...] = known[violate].also
        return also
    near = [id_ for id_ in known if id_.startswith(violate.partition("/")[0])]
    hint = f"there are {', '.join(near)}" if near else "write it as ID/n, e.g. " + next(iter(known), "AD-RATE-03/1")
    raise CatalogueError(f"{violate}: no mutant of {key}; {hint}")
