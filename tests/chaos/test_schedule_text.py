"""Schedules as objects, as text and against what a target offers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chaos.schedules.kinds import KINDS, Kind, Parameter, Takes
from holdfast.chaos.schedules.schedule import Argument, Place, Schedule, ScheduleError, Since, Step, Subject, Time
from holdfast.chaos.schedules.text import dump, load, parse
from holdfast.chaos.schedules.validate import Offer, problems, validate
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import TimingKind

TEXT = """
[schedule]
name = "one node without its store"
duration = "60s"

[[step]]
name = "slow-a"
on = "link:a"
fault = "delay"
with = { seconds = "300ms real", direction = "down" }
at = "5s"
lasts = "20s"

[[step]]
name = "kill-b"
on = "node:b"
fault = "kill"
after = "slow-a"
since = "in-force"
at = "1500ms"
lasts = "10s"

[[step]]
name = "again"
on = "store:redis"
fault = "failover"
after = "kill-b"
"""


def test_what_is_written_is_what_is_meant() -> None:
    schedule = parse(TEXT)
    assert schedule == Schedule(
        "one node without its store",
        Time(60.0),
        (
            Step(
                "slow-a",
                Subject(Place.LINK, "a"),
                "delay",
                {"seconds": Time(0.3, TimingKind.LATENCY), "direction": "down"},
                at=Time(5.0),
                lasts=Time(20.0),
            ),
            Step(
                "kill-b",
                Subject(Place.NODE, "b"),
                "kill",
                at=Time(1.5),
                lasts=Time(10.0),
                after="slow-a",
                since=Since.IN_FORCE,
            ),
            Step("again", Subject(Place.STORE, "redis"), "failover", after="kill-b"),
        ),
    )
    assert [(window.start, window.end) for window in schedule.planned()] == [(5.0, 25.0), (6.5, 16.5), (16.5, 16.5)]


def test_a_schedule_is_printed_one_line_a_step() -> None:
    assert parse(TEXT).describe().splitlines() == [
        "one node without its store: 3 faults in 60s",
        "  slow-a  link:a       delay direction=down seconds=0.3s real, at 5s, for 20s",
        "  kill-b  node:b       kill, 1.5s after slow-a is in-force, for 10s",
        "  again   store:redis  failover, 0s after kill-b is healed, once",
    ]


def test_the_time_scale_shrinks_stimuli_and_leaves_real_times_alone() -> None:
    scaled = parse(TEXT).scaled(0.5)
    slow, kill, _ = scaled.steps
    assert (scaled.duration, slow.at, slow.lasts, kill.at) == (Time(30.0), Time(2.5), Time(10.0), Time(0.75))
    assert slow.arguments["seconds"] == Time(0.3, TimingKind.LATENCY)
    assert slow.options() == {"seconds": 0.3, "direction": "down"}
    assert not list(problems(scaled))


figures = st.floats(0, 1e6, allow_nan=False)
times = st.builds(Time, figures, st.sampled_from([TimingKind.STIMULUS, TimingKind.LATENCY]))
words = st.text(min_size=1, max_size=8)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Sound ones of any names and figures: one subject a step, all within the duration."""
    steps: list[Step] = []
    for number, name in enumerate(draw(st.lists(words, unique=True, max_size=4))):
        fault = draw(st.sampled_from(sorted(KINDS.values(), key=lambda fault: fault.name)))
        subject = Subject(draw(st.sampled_from(sorted(fault.on))), f"{number}-{draw(words)}")
        arguments = {key: _argument(draw, parameter) for key, parameter in fault.parameters.items()}
        lasts = draw(times.filter(lambda time: time.seconds > 0)) if fault.lasting else None
        after = draw(st.none() | st.sampled_from([step.name for step in steps])) if steps else None
        since = draw(st.sampled_from(Since)) if after is not None else Since.HEALED
        steps.append(Step(name, subject, fault.name, arguments, draw(times), lasts, after, since))
    return Schedule(draw(words), Time(1e8), tuple(steps), draw(st.none() | st.integers(0, 2**63)))


def _argument(draw: st.DrawFn, parameter: Parameter) -> Argument:
    options: dict[Takes, st.SearchStrategy[Argument]] = {
        Takes.TIME: times,
        Takes.SHARE: st.floats(0, 1),
        Takes.NUMBER: st.integers(1) | st.floats(1, 1e300),
        Takes.WORD: st.sampled_from(parameter.words or ("",)),
    }
    return draw(options[parameter.takes])


@given(schedules())
def test_what_is_dumped_is_read_back_equal(schedule: Schedule) -> None:
    assert parse(dump(schedule)) == schedule


def test_a_file_is_read_and_a_missing_one_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(ScheduleError, match=r"mine\.toml: no such schedule"):
        load(path)
    path.write_text(TEXT)
    assert load(path) == parse(TEXT)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[schedule]", "[shedule]", "[shedule]: no such section; did you mean 'schedule'?"),
        ("[schedule]", "[schedule", "not valid TOML"),
        ('duration = "60s"', "", "[schedule] duration: missing"),
        ('duration = "60s"', "duration = 60", "[schedule] duration: must be text"),
        ('duration = "60s"', 'duration = "soon"', "[schedule] duration: 'soon' is no duration; write it like"),
        ('on = "link:a"', "", "[[step]] slow-a on: missing"),
        ('on = "link:a"', 'on = "a"', "[[step]] slow-a on: 'a' names nothing; write link:NAME, udp:NAME"),
        ('fault = "delay"', 'fautl = "delay"', "[[step]] slow-a fautl: no such key; did you mean 'fault'?"),
        ('fault = "delay"', 'fault = "dealy"', "step slow-a: fault: no fault 'dealy'; did you mean 'delay'?"),
        (
            'fault = "kill"',
            'fault = "cut"',
            "step kill-b: fault: cut can't be put on node:b; on a node there are: term",
        ),
        ('"300ms real"', '"300ms realy"', "[[step]] slow-a with seconds: '300ms realy' is no time"),
        ('"300ms real"', "0.3", "step slow-a: with seconds: 0.3 does not fit; write a time like"),
        ('"300ms real"', "[1]", "[[step]] slow-a with seconds: must be text, a number"),
        ('seconds = "300ms real", ', "", "step slow-a: with seconds: missing; delay needs it (time)"),
        ('direction = "down"', 'direction = "left"', "with direction: left does not fit; write one of up, down, both"),
        ('direction = "down"', 'drection = "down"', "delay has no such argument; did you mean 'direction'?"),
        ('lasts = "20s"', "", "step slow-a: lasts: missing; delay lasts until it is healed"),
        ('lasts = "20s"', 'lasts = "56s"', "step slow-a: lasts: it ends at 61 s, and the schedule at 60 s; make"),
        (
            'after = "kill-b"',
            'after = "kill-b"\nlasts = "1s"',
            "step again: lasts: failover happens once; leave it out",
        ),
        ('after = "kill-b"', 'after = "kil-b"', "step again: after: no step 'kil-b'; there are: slow-a, kill-b, again"),
        ('after = "kill-b"', 'since = "healed"', "[[step]] again since: counts from nothing"),
        ('since = "in-force"', 'since = "begun"', "[[step]] kill-b since: 'begun' is no moment of a step"),
        ('after = "slow-a"', 'after = "kill-b"', "step kill-b: after: waits for itself (kill-b → kill-b)"),
        ('name = "again"', 'name = "kill-b"', "step kill-b: there are two of this name"),
    ],
)
def test_each_mistake_names_file_key_and_remedy(old: str, new: str, complaint: str) -> None:
    assert old in TEXT
    with pytest.raises(ScheduleError) as raised:
        parse(TEXT.replace(old, new, 1), "mine.toml")
    assert complaint in str(raised.value)
    assert all(line.startswith("mine.toml: ") for line in str(raised.value).splitlines())


def step(name: str, on: str, fault: str, at: float, lasts: float, **arguments: Argument) -> Step:
    return Step(name, Subject.parse(on), fault, arguments, Time(at), Time(lasts))


def found(*steps: Step, offer: Offer | None = None) -> list[str]:
    return list(problems(Schedule("mine", Time(100.0), steps), offer))


def test_faults_that_exclude_each_other_must_not_overlap_on_one_subject() -> None:
    cut = step("one", "link:a", "cut", 10, 10)
    [clash] = found(cut, step("two", "link:a", "refuse", 19, 5))
    assert clash == (
        "step two: at: refuse would begin while cut of one is in force, and on link:a they exclude each other; "
        'begin later, or write after = "one"'
    )
    assert not found(cut, step("two", "link:b", "refuse", 15, 5))
    assert not found(cut, step("two", "link:a", "refuse", 20, 5))
    assert not found(cut, step("two", "link:a", "delay", 15, 5, seconds=Time(1.0)))


def test_figures_in_tenths_that_touch_do_not_overlap() -> None:
    first, second = step("one", "node:a", "stop", 0.1, 0.2), step("two", "node:a", "stop", 0.3, 1)
    assert 0.1 + 0.2 > 0.3
    assert not found(first, second)


OFFER = Offer(
    frozenset({Subject(Place.LINK, "a"), Subject(Place.LINK, "b"), Subject(Place.NODE, "a")}),
    frozenset({Capability.CHAOS_PARTITION, Capability.CONTROL_RESTART}),
)


def test_a_target_is_asked_for_its_subjects_and_capabilities() -> None:
    assert not found(step("one", "link:a", "cut", 1, 1), offer=OFFER)
    assert found(step("one", "link:z", "cut", 1, 1), offer=OFFER) == [
        "step one: on: the target has no link:z; it has: link:a, link:b"
    ]
    [complaint] = found(step("one", "node:a", "kill", 1, 1), offer=OFFER)
    assert complaint == (
        "step one: fault: kill needs control.kill, which this target does not offer; "
        "it would with [[node]] start, or the hook `kill`"
    )
    cut, kill = KINDS["cut"], KINDS["kill"]
    takes = [OFFER.takes(cut, Subject(Place.LINK, "a")), OFFER.takes(kill, Subject(Place.NODE, "a"))]
    assert takes == [True, False]
    taken = [name for name, kind in KINDS.items() if any(OFFER.takes(kind, one) for one in OFFER.subjects)]
    assert taken == ["stall", "refuse", "cut", "reset", "restart"]


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ScheduleError) as raised:
        validate(
            Schedule("mine", Time(5.0), (step("one", "link:z", "cut", 1, 9), step("two", "node:a", "stall", 1, 1))),
            OFFER,
        )
    assert len(str(raised.value).splitlines()) == 3


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_time_is_a_number_not_below_zero(seconds: float) -> None:
    with pytest.raises(ScheduleError, match="not below zero"):
        Time(seconds)


def test_a_time_is_a_stimulus_or_a_latency() -> None:
    with pytest.raises(ScheduleError, match="stimulus or latency"):
        Time(1.0, TimingKind.SEED)


@pytest.mark.parametrize("fault", KINDS.values(), ids=lambda fault: str(fault.name))
def test_every_fault_can_be_drawn_and_says_what_it_does(fault: Kind) -> None:
    assert fault.on
    assert fault.needs
    assert fault.doc
    for parameter in fault.parameters.values():
        assert parameter.default is not None or parameter.low < parameter.high
        assert parameter.takes is not Takes.WORD or parameter.default in parameter.words
