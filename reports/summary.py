"""The end of a run in plain lines: verdicts by group, what is not green and why, and whether the plan was kept.

A run of mutants ends with its kill matrix instead: every mutant and what killed it, the false alarms, the totals.
"""

import textwrap
from collections.abc import Iterator
from typing import Any

from holdfast.reports.blocked import blocked_line, told_one_by_one
from holdfast.reports.finding import WIDTH
from holdfast.reports.text import Json, count, cut, pad, seconds, visible
from holdfast.run.events import CheckFinished, RunWaiting
from holdfast.spec.verdict import Verdict

GREEN = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})


def group_of(requirement: str) -> str:
    """`AD-RATE` of `AD-RATE-03`."""
    return requirement.rpartition("-")[0] or requirement


def group_of_mutant(mutant: Json) -> str:
    """The group of the row that a mutant violates; for a drawn one, the module that it changes."""
    return str(mutant["drawn"]["module"]) if mutant["drawn"] else group_of(mutant["requirement"])


def mutant_name(mutant: Json) -> str:
    return f"{mutant['id']} {mutant['violation']}"


def alarm_of(check: Json) -> Json:
    """Returns the attempt on a clean copy that raised the false alarm, as a finding."""
    found: Json = next(attempt for attempt in check["attempts"] if attempt["verdict"] == check["verdict"])
    return {"check": check["check"], "title": check["title"], **found}


def plan_line(document: Json) -> str:
    plan, planned = document["plan"], document["planned"]
    what = document["mutants"]
    parts = [
        count(len(what), "mutant") if what else count(plan["requirements"], "requirement"),
        count(plan["checks"], "check"),
        f"{plan['overlap']} at a time",
        *_alone(plan.get("alone")),
        *([] if what else [count(plan["faults"], "fault")]),
    ]
    estimate = f"about {seconds(planned['wall_s'])}" if planned["wall_s"] is not None else "no estimate"
    left = f"; {len(plan['left_out'])} left out" if plan["left_out"] else ""
    return f"plan: {', '.join(parts)}, {estimate}{left}"


def _alone(alone: Json | None) -> Iterator[str]:
    """Yields how many checks run alone, and the standing wait before them."""
    if alone:
        wait = f" after settling for {seconds(alone['settle_s'])}" if alone["settle_s"] else ""
        yield f"{alone['checks']} of them alone{wait}"


def waiting_line(said: RunWaiting) -> str:
    """Returns why the whole run pauses: `waiting 15.2 s for the target to forget …`."""
    long = f" {seconds(said.for_s)}" if said.for_s is not None else ""
    return f"waiting{long} for {visible(said.waiting_for)}"


def reconciliation_line(document: Json) -> str:
    """Returns what was planned and what was decided, so that a reader sees at a glance that nothing got lost."""
    if mutants := document["mutants"]:
        judged = sum(mutant["status"] != "not-judged" for mutant in mutants)
        return f"{count(len(mutants), 'mutant')} planned, {judged} judged"
    got = document["plan"]["reconciliation"]
    text = (
        f"{count(got['rows_planned'], 'row')} planned, {got['rows_decided']} decided; "
        f"{count(got['checks_planned'], 'check')} planned, {got['checks_finished']} finished"
    )
    if got["unexpected"]:
        text += f", {len(got['unexpected'])} not in the plan"
    return text


def verdict_line(document: Json) -> str:
    summary = document["summary"]
    said = [f"{summary[verdict]} {verdict}" for verdict in reversed(Verdict) if summary[verdict]]
    return f"{' · '.join(said) or 'no rows'}: exit {summary['exit']}{narrowed_text(summary)}"


def narrowed_text(summary: Json) -> str:
    """Returns the end of a summary line: by what the run was narrowed. A green end must not read as a whole run's."""
    said = summary.get("narrowed") or []
    return f", narrowed: {visible(', '.join(said))}" if said else ""


def outcome_line(document: Json) -> str:
    """Returns what the exit code means, in this run's own numbers."""
    summary = document["summary"]
    said = list(_of_mutants(summary["mutants"])) if summary["mutants"] else []
    if summary["fail"]:
        said.append(f"{count(summary['fail'], 'row')} failed")
    if summary["fixed"]:
        said.append(f"{count(summary['fixed'], 'row')} listed as known now passing: mend the list")
    if open_rows := summary["inconclusive"] + summary["error"]:
        said.append(f"{count(open_rows, 'row')} could not be judged")
    if blind := summary["not-observable"]:
        said.append(f"{count(blind, 'row')} could not be observed: add what is missing, or list it in [not_offered]")
    said += [f"a check of walks ended as {verdict}" for verdict in lost_walks(document)]
    if document["interrupted"]:
        said.append("the run did not reach its end")
    return ", ".join(said) or _all_well(summary)


def lost_walks(document: Json) -> list[str]:
    """Returns the verdicts of walks that no row shows, because they came to none; those that count for nothing not."""
    finals = [check["attempts"][-1] for check in document["checks"] if check["attempts"]]
    counts = {Verdict.ERROR, Verdict.FAIL, *([Verdict.INCONCLUSIVE] if document["purpose"] == "walks" else [])}
    return [attempt["verdict"] for attempt in finals if attempt["decided"] == [] and attempt["verdict"] in counts]


def _of_mutants(got: Json) -> Iterator[str]:
    if got["drawn"] and got["drawn"]["rate"] is not None:
        yield power_line(got["drawn"])
    elif got["survived"]:
        yield f"{count(got['survived'], 'mutant')} survived"
    if got["not-judged"]:
        yield f"{count(got['not-judged'], 'mutant')} could not be judged"
    if got["false_alarms"]:
        yield f"{count(len(got['false_alarms']), 'check')} raised a false alarm on a clean copy"


def _all_well(summary: Json) -> str:
    if summary["mutants"] and summary["mutants"]["killed"]:
        return "no mutant survived and no check raised a false alarm"
    if not summary["rows"]:
        return "nothing was judged"
    which = "looked at" if summary.get("narrowed") else "of the profile"
    return f"every row {which} is decided and none failed{narrowed_text(summary)}"


def summary_lines(document: Json, width: int = WIDTH) -> list[str]:
    if document["summary"]["mutants"]:
        return [*_matrix(document, width), matrix_line(document)]
    lines = [*_table(document), ""]
    if listed := list(_not_green(document, width)):
        lines += [*listed, ""]
    lines += [cut(line, width) for line in _facts(document)]
    return [*lines, verdict_line(document)]


def matrix_line(document: Json) -> str:
    """Returns the kill matrix in one line."""
    got = document["summary"]["mutants"]
    if got["drawn"]:
        return _drawn_line(got)
    open_ones = f", {got['not-judged']} not judged" if got["not-judged"] else ""
    return (
        f"{got['mutants']} mutants: {got['killed']} killed, {got['survived']} survived, "
        f"{got['excluded']} excluded{open_ones}; {got['covered_violations']} of {got['violations']} violations "
        f"covered; {got['clean_runs']} clean runs, {len(got['false_alarms'])} false alarms"
    )


def power_line(drawn: Json) -> str:
    """Returns the published figure: which share of the drawn mutants the suite kills."""
    rate = "no rate" if drawn["rate"] is None else f"{drawn['rate']:.1%}"
    killed = f"{drawn['killed']} of {drawn['judged']} drawn mutants killed"
    return f"detection power {rate} ({killed}, goal {drawn['goal']:.0%})"


def _drawn_line(got: Json) -> str:
    drawn = got["drawn"]
    open_ones = f", {got['not-judged']} not judged" if got["not-judged"] else ""
    return (
        f"{power_line(drawn)}: {drawn['equivalent']} equivalent, {len(drawn['stillborn'])} stillborn{open_ones}; "
        f"{got['clean_runs']} clean runs, {len(got['false_alarms'])} false alarms"
    )


def _diff_lines(mutant: Json) -> Iterator[str]:
    """Yields the change of a drawn mutant that is not killed: nothing else says what it is."""
    if mutant["drawn"] and mutant["status"] != "killed":
        yield from (f"    {visible(line)}" for line in mutant["drawn"]["diff"].splitlines())


def _matrix(document: Json, width: int) -> Iterator[str]:
    """Yields each mutant and what killed it. Reasons of the others are not cut, because they say where to look."""
    for mutant in document["mutants"]:
        yield cut(f"  {mutant['status']:<10} {mutant['id']:<14} {visible(mutant['violation'])}", width)
        by = ", ".join(check.rpartition("::")[2] for check in mutant["by"])
        if by or mutant["reason"]:
            yield f"  {'':<10} {'':<14} {cut(visible(by), width) or visible(mutant['reason'])}"
        yield from _diff_lines(mutant)
    for dead in (document["summary"]["mutants"]["drawn"] or {"stillborn": []})["stillborn"]:
        yield cut(f"  {'stillborn':<10} {dead['id']:<14} {visible(dead['reason'])}", width)
    for check, reason in document["summary"]["mutants"]["false_alarms"].items():
        yield f"  false alarm on a clean copy: {visible(check)}: {visible(reason)}"
    if document["interrupted"]:
        yield f"  interrupted: {document['interrupted']}"
    yield from (f"  {note}" for note in document["plan"]["reconciliation"]["notes"])
    yield from (f"  left over   {visible(str(thing))}" for thing in document["leftovers"])
    yield cut(_time_line(document), width)
    if document["cpu_s"] is not None:
        yield cut(cost_line(document), width)


def _table(document: Json) -> Iterator[str]:
    rows = document["requirements"]
    groups = dict.fromkeys(group_of(row["id"]) for row in rows)
    used = [verdict for verdict in reversed(Verdict) if document["summary"][verdict]]
    first = max([len("group"), *map(len, groups)])
    yield "  ".join([f"{'group':<{first}}", "rows", *used])
    for group in groups:
        mine = [row["verdict"] for row in rows if group_of(row["id"]) == group]
        cells = [_cell(mine.count(verdict), len(verdict)) for verdict in used]
        yield "  ".join([f"{group:<{first}}", f"{len(mine):>4}", *cells])
    if len(groups) > 1:
        totals = [_cell(document["summary"][verdict], len(verdict)) for verdict in used]
        yield "  ".join([f"{'all':<{first}}", f"{len(rows):>4}", *totals])


def _cell(number: int, width: int) -> str:
    return f"{number or '·':>{width}}"


def _not_green(document: Json, width: int) -> Iterator[str]:
    rows = told_one_by_one([row for row in document["requirements"] if row["verdict"] not in GREEN])
    for verdict in Verdict:
        for row in (row for row in rows if row["verdict"] == verdict):
            yield cut(f"{row['verdict']:<14}  {row['id']:<12}  {visible(row['title'])}", width)
            if why := _why(row):
                yield cut(f"{'':<14}  {'':<12}  {visible(why)}", width)
    for entry in document["blocked"]:
        yield from _blocked(entry, width)


def _blocked(entry: Json, width: int) -> Iterator[str]:
    """Yields one cause, and all rows that it keeps from being judged."""
    yield cut(visible(blocked_line(entry)), width)
    yield cut(f"  {visible(entry['reason'].partition(chr(10))[0])}", width)
    if entry["rows"]:
        yield from textwrap.wrap(
            ", ".join(entry["rows"]), width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
        )


def _why(row: Json) -> str:
    """Returns the reason, and for parts that could not be seen the entry of the descriptor that would show them."""
    hooks = dict.fromkeys(part["hook"] for part in row["parts"] if part["hook"] and part["verdict"] == "not-observable")
    seen = (row["finding"] or {}).get("seen")
    reason = row["reason"].partition("\n")[0] or (f"seen {seen}" if seen is not None else "")
    return "; ".join(filter(None, [reason, *(f"would be seen with {hook}" for hook in hooks)]))


def _facts(document: Json) -> Iterator[str]:
    got = document["plan"]["reconciliation"]
    yield reconciliation_line(document)
    for check in got["missing"][:10]:
        yield f"  missing     {visible(check)}"
    for check in got["unexpected"][:10]:
        yield f"  unexpected  {visible(check)}"
    yield from (f"  {note}" for note in got["notes"])
    yield from (f"  left out    {left['id']}: {visible(left['reason'])}" for left in document["plan"]["left_out"])
    yield from (f"  left over   {visible(str(thing))}" for thing in document["leftovers"])
    yield from _walks(document)
    yield _time_line(document)
    if document["cpu_s"] is not None:
        yield cost_line(document)


def _walks(document: Json) -> Iterator[str]:
    """Yields what the walks of each check reached, and in a run of walks alone the pairs that they never reached."""
    for check in document["checks"]:
        for walk in (attempt["walk"] for attempt in check["attempts"] if attempt.get("walk")):
            cut_short = sum(walk["cut"].values())
            yield (
                f"{count(walk['walks'], 'walk')} of {count(walk['steps'], 'step')}"
                f"{f', {cut_short} cut short' if cut_short else ''}: {walk['pairs']} of "
                f"{count(walk['pairs_goal'], 'pair')} reached, {count(walk['triples'], 'triple')}"
            )
            yield from (f"  differs  {visible(each)}" for each in walk["differences"])
            if document["purpose"] == "walks":
                yield from (f"  never reached  {visible(pair)}" for pair in walk["never"])


def _time_line(document: Json) -> str:
    longest: dict[str, Any] | None = document["longest_check"]
    text = f"wall {seconds(document['wall_s'])} (planned {seconds(document['planned']['wall_s'])})"
    if waits := document.get("waits"):
        text += f", stood still {seconds(sum(wait['for_s'] or 0.0 for wait in waits))}"
    text += f", checks {seconds(document['sum_s'])} in all"
    if longest:
        text += f", longest {seconds(longest['duration_s'])}: {visible(longest['check'].rpartition('::')[2])}"
    return text


def cost_line(document: Json) -> str:
    """Returns what the run cost, and how far its wall time is from the least that it could be."""
    text = f"CPU {seconds(document['cpu_s'])} on {count(document['cores'], 'core')}"
    if document["wall_ratio"] is not None:
        text += f"; wall is {document['wall_ratio']:.2f} times max(longest check, CPU ÷ cores)"
    return text


def check_line(said: CheckFinished, width: int = WIDTH) -> str:
    """Returns one finished attempt: `  pass  AD-RATE-03  a burst across a window border is locked  6.1 s`."""
    ids = list(dict.fromkeys(claim.id for claim in said.verifies))
    first = ids[0] if ids else "–"
    more = f" +{len(ids) - 1}" if len(ids) > 1 else ""
    again = "" if said.final else "  (tried once more)"
    tail = f"{seconds(said.duration_s)}{again}"
    room = max(width - 2 - 14 - 2 - 16 - 2 - len(tail) - 2, 10)
    title = cut(visible(said.title), room)
    return f"  {said.verdict:<12}  {pad(first + more, 14)}  {title}  {tail}"
