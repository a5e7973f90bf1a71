"""Hooks, and sections of a descriptor that only one spec has: declared by a catalogue, checked, shown, handed on."""

import dataclasses
from pathlib import Path

import pytest

from holdfast.check.verifies import CheckSpec, Claim, spec_of, verifies
from holdfast.cli import init
from holdfast.cli.explain import explain
from holdfast.run.estimate import Pace
from holdfast.run.plan import announced, make_plan
from holdfast.run.selection import PlanError, Selection
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import Catalogue, CatalogueError, builtin, load
from holdfast.target import descriptor
from holdfast.target.descriptor import Target, TargetError
from holdfast.target.hooks import Hook

CATALOGUE = """
[spec]
key = "jobs"
title = "Jobs"
source = "jobs.txt"
version = "1.0"
document = { title = "Jobs of everybody", repository = "somebody/jobs", path = "docs/jobs.md" }

[[section]]
name = "cluster"
doc = "How this cluster is spelled."
[section.keys]
topics = { type = "text", one_of = ["stream", "pubsub"], default = "stream", doc = "how topics are carried" }
names = { type = ["text", "table"], doc = "spelling of channels", example = '"plain"', required = true }
most = { type = "integer", doc = "jobs at once" }
[section.keys.features]
type = "table"
doc = "What it can do."
keys = { cancel = { type = "boolean", default = false, doc = "jobs can be cancelled" } }

[[hook]]
name = "stimulus.enqueue"
doc = "gives the cluster a job"
parameters = ["job_id", "queue"]
example = '{ redis = ["XADD", "jobs", "*", "data", "{json}"] }'

[[hook]]
name = "query.job"
doc = "answers the record of a job, or null"
parameters = ["job_id"]

[[requirement]]
id = "JB-RUN-01"
section = "1"
lines = "1"
level = "MUST"
origin = "seed"
title = "Jobs run"
text = "A job that was enqueued runs."
needs = ["wire"]
observe = "It runs."
extra = [{ needs = ["store"], observe = "Its record says so." }]
load = "Fifty jobs a second."
violations = ["It does not."]
"""
HEAD = """
[target]
name = "mine"
spec = "jobs"
profile = "store"
[[node]]
urls = { http = "http://127.0.0.1:1" }
"""


def catalogue(folder: Path, text: str = CATALOGUE) -> Catalogue:
    (folder / "requirements.toml").write_text(text)
    return load(folder / "requirements.toml")


def target(folder: Path, text: str) -> Target:
    (folder / "mine.toml").write_text(HEAD + text)
    return descriptor.load(folder / "mine.toml", catalogue(folder))


def test_a_section_of_its_own_reaches_the_driver_with_its_defaults(tmp_path: Path) -> None:
    found = target(tmp_path, '[cluster]\nnames = { lock = "l:{node}" }\n[cluster.features]\n')
    assert found.own == {"cluster": {"names": {"lock": "l:{node}"}, "topics": "stream", "features": {"cancel": False}}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[cluster]\nnames = "x"\ntopic = "stream"', r"\[cluster\] topic: no such key; did you mean 'topics'\?"),
        ('[cluster]\nnames = "x"\ntopics = "mail"', r"\[cluster\] topics: 'mail' is none of 'stream', 'pubsub'"),
        ("[cluster]\nnames = 5", r"\[cluster\] names: must be text or table \(spelling of channels\)"),
        ('[cluster]\nnames = "x"\nmost = true', r"\[cluster\] most: must be integer"),
        (
            '[cluster]\nnames = "x"\n[cluster.features]\ncancle = true',
            r"features cancle: no such key; did you mean 'cancel'",
        ),
        ("", r"\[cluster\] names: missing \(spelling of channels\), e.g. names = \"plain\""),
        ("[[cluster]]", r"\[cluster\] must be a table"),
        ("[clusters]\n", r"\[clusters\]: no such section; did you mean 'cluster'\?"),
        ('[stimulus]\nenqeue = "x"', r"\[stimulus\] enqeue: no check calls such a hook; did you mean 'enqueue'\?"),
    ],
)
def test_what_is_wrong_in_it_is_told_with_the_nearest_name(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(TargetError, match=complaint):
        target(tmp_path, text)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("{}", "write exactly one of"),
        ('{ exec = "x", http = "GET y" }', "write exactly one of"),
        ('{ exec = "" }', "exec: write a command"),
        ('{ exec = "x", header = {} }', "header: no such key of a hook with exec"),
        ('{ http = "nodes.a.url" }', "http: write a method and a URL"),
        ('{ http = "GET x", headers = 5 }', "headers: write a table"),
        ('{ http = "POST x", body = 5 }', "body: write a text, or a table"),
        ("{ redis = [] }", "redis: write one command"),
        ("{ redis = 5 }", "redis: write one command"),
        ('{ redis = { script = "none.lua" } }', "redis script: .*none.lua is no file"),
        ('{ redis = { scrpit = "none.lua" } }', "redis scrpit: no such key; did you mean 'script'"),
        ('{ exec = "x", timeout = "soon" }', "'soon' is no duration"),
    ],
)
def test_a_hook_that_makes_no_sense_is_refused_when_it_is_read(tmp_path: Path, entry: str, complaint: str) -> None:
    with pytest.raises(TargetError, match=complaint):
        target(tmp_path, f'[stimulus]\nenqueue = {entry}\n[cluster]\nnames = "x"\n')


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('type = "integer"', 'type = "int"', r"\[\[section\]\] cluster most: type 'int' is none of text, integer"),
        ('doc = "jobs at once"', 'dco = "x"', "most: dco: no such key"),
        ('name = "query.job"', 'name = "ask.job"', r"\[\[hook\]\] 'ask.job': write section.name"),
        ('doc = "gives the cluster a job"', "", r"\[\[hook\]\] stimulus.enqueue: doc is missing"),
    ],
)
def test_a_catalogue_that_declares_nonsense_is_refused(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises(CatalogueError, match=complaint):
        catalogue(tmp_path, CATALOGUE.replace(old, new))


def test_init_shows_sections_and_hooks_and_what_it_writes_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = catalogue(tmp_path)
    monkeypatch.setattr(init, "builtin", lambda _: jobs)
    monkeypatch.setattr(init, "builtin_path", lambda _: descriptor.builtin_path("admission"))
    text = init.commented_descriptor("jobs")
    assert (
        '# enqueue = { redis = ["XADD", "jobs", "*", "data", "{json}"] }  # gives the cluster a job ({job_id}, {queue})'
        in text
    )
    assert (
        '# How this cluster is spelled.\n[cluster]\n# topics = "stream"  # how topics are carried (stream, pubsub)'
        in text
    )
    assert 'names = "plain"  # spelling of channels' in text
    assert "[cluster.features]\n# cancel = false  # jobs can be cancelled" in text
    (tmp_path / "made.toml").write_text(text)
    assert descriptor.load(tmp_path / "made.toml", jobs).own["cluster"]["names"] == "plain"


@verifies("JB-RUN-01", needs_hooks=["stimulus.enqueue"])
async def enqueues() -> None: ...


@verifies("JB-RUN-01", part=2, needs_hooks=["query.job"])
@verifies("JB-RUN-01", needs_hooks=["stimulus.enqueue"])
async def enqueues_and_asks() -> None: ...


def planned(found: Target, jobs: Catalogue) -> list[tuple[str, str | None, tuple[str, ...]]]:
    checks = {each.__name__: spec for each in (enqueues, enqueues_and_asks) if (spec := spec_of(each))}
    plan = make_plan(jobs, found, checks, Selection())
    return [(part.status, part.hook, part.checks) for part in plan.rows["JB-RUN-01"]]


def test_the_plan_knows_a_missing_hook_and_names_it(tmp_path: Path) -> None:
    jobs, own = catalogue(tmp_path), '[cluster]\nnames = "x"\n'
    assert planned(target(tmp_path, own), jobs) == [
        ("not-observable", "[stimulus] enqueue", ()),
        ("not-observable", "[observe] store, or [query]", ()),
    ]
    work = own + '[stimulus]\nenqueue = "enqueue {job_id}"\n'
    assert planned(target(tmp_path, work), jobs)[0] == ("planned", None, ("enqueues",))
    both = target(tmp_path, work + '[query]\njob = { redis = ["GET", "{job_id}"] }\n')
    assert Capability.STORE in both.capabilities()
    assert planned(both, jobs) == [
        ("planned", None, ("enqueues", "enqueues_and_asks")),
        ("planned", None, ("enqueues_and_asks",)),
    ]
    other = dataclasses.replace(both, hooks={"query.other": both.hooks["query.job"], **_only(both, "stimulus.enqueue")})
    assert planned(other, jobs) == [
        ("planned", None, ("enqueues",)),
        ("not-observable", "[query] job", ()),
    ]


def _only(found: Target, name: str) -> dict[str, Hook]:
    return {name: found.hooks[name]}


def test_a_check_that_needs_an_undeclared_hook_is_our_mistake(tmp_path: Path) -> None:
    jobs = catalogue(tmp_path)
    spec = CheckSpec(enqueues, [Claim("JB-RUN-01")], hooks=frozenset({"stimulus.cancel"}))
    with pytest.raises(PlanError, match=r"needs the hook stimulus.cancel, which jobs does not declare"):
        make_plan(jobs, target(tmp_path, '[cluster]\nnames = "x"\n'), {"a": spec}, Selection())


def test_the_document_and_the_note_on_load_are_announced(tmp_path: Path) -> None:
    jobs, found = catalogue(tmp_path), target(tmp_path, '[cluster]\nnames = "x"\n')
    plan = make_plan(jobs, found, {}, Selection())
    (row,) = announced(plan, jobs, Pace(found, jobs, found.timings(jobs), 1)).rows
    assert row.document
    assert (row.document.title, row.document.path, row.load) == (
        "Jobs of everybody",
        "docs/jobs.md",
        "Fifty jobs a second.",
    )


def test_explain_shows_the_note_on_load(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtin("admission")
    row = dataclasses.replace(real.requirements["AD-VER-01"], load="All at once.")
    noted = dataclasses.replace(real, requirements={**real.requirements, row.id: row})
    monkeypatch.setattr("holdfast.cli.explain.builtin", lambda _: noted)
    assert "  under load\n    All at once.\n" in explain("AD-VER-01")
