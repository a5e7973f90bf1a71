"""Decides a campaign: each budget, count, recovery and rule becomes one finding with a verdict, and they fold into one.

What keeps a finding from being decided comes first: requests or workers that are missing, a fault without its receipt,
a generator that was itself too slow. None of these excuses a broken rule: two sessions of one character are two,
whoever counted them. Latency is judged from when a request was due; it fails a target only if the target alone
took too long, from when the request had left. A generator that is too slow often shares its machine with the target,
which is then as slow as it is; so no latency is judged then, neither way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from holdfast.check.history import History, HistoryError
from holdfast.check.invariants import Judged
from holdfast.check.timeline import samples_needed
from holdfast.load.campaign import Budget, Campaign, Count, Numbers, Recovery
from holdfast.load.fold import Folded
from holdfast.load.ledger import SECOND
from holdfast.load.rules import RULES
from holdfast.load.sequential import Proof, Standing, judge
from holdfast.spec.verdict import Verdict, fold


@dataclass(frozen=True)
class FaultWindow:
    """A fault as it was: moments in seconds since the start of the campaign, and what its receipts showed."""

    fault: str
    asked: float
    in_force: float
    healing: float
    healed: float
    proven: bool
    receipts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing that the campaign decides."""

    what: str
    verdict: Verdict
    expected: str
    seen: str
    rests_on: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    findings: tuple[Finding, ...]
    doubts: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The first finding of the verdict, in a sentence."""
        worst = next((each for each in self.findings if each.verdict is self.verdict), None)
        if worst is None or self.verdict is Verdict.PASS:
            return ""
        return worst.reason or f"{worst.what}: expected {worst.expected}, seen {worst.seen}"


def phases(windows: Sequence[FaultWindow], last: int) -> dict[str, list[int]]:
    """Returns which seconds of the campaign lie before the first fault, during one and after one."""
    everything = list(range(last + 1))
    if not windows:
        return {"all": everything}
    during = {second for each in windows for second in everything if _touches(each, second)}
    first = min(each.asked for each in windows)
    before = [second for second in everything if second not in during and second < first]
    after = [second for second in everything if second not in during and second not in before]
    return {"all": everything, "before": before, "during": sorted(during), "after": after}


def _touches(window: FaultWindow, second: int) -> bool:
    return second * SECOND < window.healed and (second + 1) * SECOND > window.asked


def decide(
    campaign: Campaign,
    numbers: Numbers,
    folded: Folded,
    windows: Sequence[FaultWindow] = (),
    beside: Iterable[Finding] = (),
) -> Judgement:
    """Judges what the workers saw, and puts it together with what was found `beside` that.

    Without a single sample nothing passes.
    """
    bench = _Bench(campaign, numbers, folded, windows)
    findings = (*bench.findings(), *beside)
    return Judgement(fold(each.verdict for each in findings), findings, tuple(bench.doubts))


class _Bench:
    """Everything that the findings of one campaign rest on."""

    def __init__(self, campaign: Campaign, numbers: Numbers, folded: Folded, windows: Sequence[FaultWindow]) -> None:
        self._campaign, self._numbers, self._folded, self._windows = campaign, numbers, folded, windows
        last = max((second for _, second in folded.seconds), default=0)
        self._phases = phases(windows, last)
        self._gaps = list(_gaps(campaign, folded, windows))
        self._slow = [f"generator saturated: {each}" for each in folded.saturated()]
        if folded.counts.shed:
            self._slow.append(f"{folded.counts.shed} requests were shed: {campaign.in_flight} were in flight already")
        self.doubts = [*self._gaps, *self._slow]

    def findings(self) -> Iterator[Finding]:
        if self._folded.began is None or self._folded.refused:
            yield Finding("the campaign", Verdict.INCONCLUSIVE, "requests", "none", reason=self._gaps[0])
            return
        for budget in self._campaign.budgets:
            yield self._budget(budget)
        for count in self._campaign.counts:
            yield self._count(count)
        for recovery in self._campaign.recoveries:
            yield self._recovery(recovery)
        history = self._folded.history
        for rule in self._campaign.rules:
            yield self._rule(rule, history)

    def _budget(self, budget: Budget) -> Finding:
        limit, seconds = self._numbers.latency(budget.within), self._phases.get(budget.phase, [])
        due = self._folded.latencies(budget.of, only=seconds)
        sent = self._folded.latencies(budget.of, sent=True, only=seconds)
        needed = 1 if budget.quantile >= 1 else samples_needed(budget.quantile)
        name = "the longest" if budget.quantile >= 1 else f"P{100 * budget.quantile:g}"
        place = "" if budget.phase == "all" else f" {budget.phase} the faults"
        what, expected = f"{name} {budget.of}{place}", f"at most {limit:g} s"
        took, of_it = due.at(budget.quantile), sent.at(budget.quantile)
        seen = f"{took:.3f} s from when it was due, {of_it:.3f} s from when it left"

        def end(verdict: Verdict, reason: str = "") -> Finding:
            return Finding(what, verdict, expected, f"{seen} ({len(due)} requests)", budget.rests_on, reason)

        if len(due) < needed:
            return end(Verdict.INCONCLUSIVE, f"{what}: {len(due)} requests, and {needed} are needed to say anything")
        if took <= limit:
            return end(Verdict.INCONCLUSIVE, self.doubts[0]) if self.doubts else end(Verdict.PASS)
        if budget.quantile < 1 and self._gaps:
            return end(Verdict.INCONCLUSIVE, self._gaps[0])
        if of_it <= limit:
            return end(Verdict.INCONCLUSIVE, f"{what}: only the generator's own delay is past the limit")
        if self._slow:
            return end(Verdict.INCONCLUSIVE, self._slow[0])
        return end(Verdict.FAIL if budget.document else Verdict.WARN)

    def _count(self, count: Count) -> Finding:
        outcomes = self._folded.outcomes(count.of)
        total, seen = sum(outcomes.values()), _counted(outcomes, count.outcome)
        what = f"{count.of} → {count.outcome}"
        if count.exactly is not None:
            wanted = round(self._numbers.of(count.exactly))
            held, expected, certain = seen == wanted, f"exactly {wanted}", seen > wanted
        else:
            share = seen / total if total else 0.0
            least, most = self._numbers.of(count.at_least or 0.0), self._numbers.of(count.at_most or 1.0)
            held, expected, certain = least <= share <= most, f"{_share(count, least, most)} of all", False
        told = f"{seen} of {total} ({', '.join(f'{name} {n}' for name, n in outcomes.most_common(6)) or 'none'})"
        reason = self._counting_doubt(total, certain=certain, timely=count.timely)
        verdict = Verdict.FAIL if count.document else Verdict.WARN
        if reason:
            verdict = Verdict.INCONCLUSIVE
        elif held:
            verdict = Verdict.PASS
        return Finding(what, verdict, expected, told, count.rests_on, reason)

    def _counting_doubt(self, total: int, *, certain: bool, timely: bool) -> str:
        """Returns why a count is not to be trusted; too many are too many, whatever is missing."""
        if timely and self._slow:
            return self._slow[0]
        if certain:
            return ""
        if not total:
            return "there was no such request"
        shed = self._folded.counts.shed
        return (self._gaps or ([f"{shed} requests were shed"] if shed else [""]))[0]

    def _recovery(self, recovery: Recovery) -> Finding:
        standing, seconds = self._standing(recovery)
        verdict = {
            Proof.MET: Verdict.PASS,
            Proof.MISSED: Verdict.FAIL if recovery.document else Verdict.WARN,
            Proof.OPEN: Verdict.INCONCLUSIVE,
        }[standing.proof]
        reason = self._gaps[0] if self._gaps else standing.describe()
        times = ", ".join(f"{each:.2f}" for each in seconds[:60])
        name = "the longest" if recovery.quantile >= 1 else f"P{100 * recovery.quantile:g}"
        return Finding(
            f"recovery of {recovery.of}",
            Verdict.INCONCLUSIVE if self._gaps else verdict,
            f"{name} at most {standing.limit:g} s",
            f"{standing.describe()}; {times or 'no'} s",
            recovery.rests_on,
            "" if verdict is Verdict.PASS and not self._gaps else reason,
        )

    def _standing(self, recovery: Recovery) -> tuple[Standing, list[float]]:
        seconds = trials(recovery, self._folded.history, self._windows)
        return judge(seconds, self._numbers.latency(recovery.within), recovery.quantile), seconds

    def _rule(self, rule: str, history: History) -> Finding:
        expected = (RULES[rule].__doc__ or rule).strip()
        try:
            result = RULES[rule](history, self._numbers.parameters())
        except HistoryError as error:
            return Finding(rule, Verdict.INCONCLUSIVE, expected, "nothing to judge", reason=str(error))
        seen = result.describe()
        if result.judged is Judged.VIOLATED:
            return Finding(rule, Verdict.FAIL, expected, seen)
        if result.judged is Judged.RAN_OUT or self._gaps:
            return Finding(rule, Verdict.INCONCLUSIVE, expected, seen, reason=self._gaps[0] if self._gaps else seen)
        return Finding(rule, Verdict.PASS, expected, seen)


def _gaps(campaign: Campaign, folded: Folded, windows: Sequence[FaultWindow]) -> Iterator[str]:
    yield from folded.missing()
    yield from (f"the generator broke: {note}" for note in folded.notes[:1])
    planned = sum(fault.times for fault in campaign.faults)
    if len(windows) < planned and not campaign.recoveries:
        yield f"{len(windows)} of {planned} faults were injected"
    for window in windows:
        if not window.proven:
            yield f"fault not applied: {window.fault}: {'; '.join(window.receipts) or 'no receipt'}"


def _counted(outcomes: Mapping[str, int], wanted: str) -> int:
    """Returns how often an outcome came; `5xx` is every status of that class, `another*` all that begin like that."""
    if wanted.endswith("*"):
        return sum(count for outcome, count in outcomes.items() if outcome.startswith(wanted[:-1]))
    if wanted.endswith("xx"):
        return sum(count for outcome, count in outcomes.items() if outcome.isdigit() and outcome[0] == wanted[0])
    return Counter(outcomes)[wanted]


def _share(count: Count, least: float, most: float) -> str:
    words = [f"at least {100 * least:g} %"] if count.at_least is not None else []
    words += [f"at most {100 * most:g} %"] if count.at_most is not None else []
    return " and ".join(words)


def trials(recovery: Recovery, history: History, windows: Iterable[FaultWindow]) -> list[float]:
    """Returns how long each proven fault was felt; a fault that nobody felt is no trial where everyone counts."""
    found = (_trial(recovery, history, window) for window in windows if window.proven)
    return [each for each in found if each is not None]


def _trial(recovery: Recovery, history: History, window: FaultWindow) -> float | None:
    mine = [each for each in history if each.what == recovery.of]
    if recovery.everyone:
        felt = [each for each in mine if window.asked <= each.invoked < window.healed]
        # Who is back has an operation with an end beside the one without, of the same beginning.
        ends = {each.client: inf for each in felt} | {each.client: each.completed for each in felt if each.ok}
        return max(ends.values()) - window.asked if ends else None
    answered = (each.completed for each in mine if each.ok and each.invoked >= window.in_force)
    return min(answered, default=inf) - window.in_force


def recovered(recovery: Recovery, history: History, window: FaultWindow) -> bool:
    """Whether this fault is over for those who felt it."""
    return _trial(recovery, history, window) != inf


def proven(campaign: Campaign, numbers: Numbers, folded: Folded, windows: Sequence[FaultWindow]) -> bool:
    """Whether every recovery of a campaign is decided, so that further faults would tell nothing new."""
    history = folded.history
    standings = [
        judge(trials(each, history, windows), numbers.latency(each.within), each.quantile)
        for each in campaign.recoveries
    ]
    return bool(standings) and all(each.proof is not Proof.OPEN for each in standings)
