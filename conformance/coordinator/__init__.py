"""Conformance suite for a cluster of job coordinators (ids CO-…), and the way around its kit.

A check asks for `cluster: Cluster` (`client`), often for `T: SpecTime`, and where its part needs the tap for
`deeds: Deeds`. The parts of the kit hang on the cluster; each is a module that says more.

- `cluster` itself (`base`, `client`): `found`, `entry` (waits), `entry_in_time` (waits, and judges a bound of ours),
  `no_entry`; `id_of`, `node_of`; `leader()`, `followers()`, `live`, `alone`; `kill`, `pause`, `resume`, `restart`,
  `leave` (SIGTERM), `start`, `start_new` (a new id), `kill_all`, `restart_all`; `ghost()`, `rebalances()`.
- `cluster.bus`: channels. `publish`, `publish_all` (MULTI), `publish_text`, `entries`, `all_entries`, `length`.
- `cluster.lock`: L. `sample`, `watch`, `taken`, `led`, `just_renewed`, `steal`, `free`, `held()`, `nobody_leads`.
- `cluster.beats`: heartbeats. `all`, `of`, `last`, `next`, `counts`, `add_up`, `shows`, `busiest`, `one_leads`.
- `cluster.jobs`: `inject`, `inject_at`, `enqueue`, `steadily`, `dispatched`, `all_dispatched`, `schedule`, `cancel`;
  arranged: `running`, `owned` (by a lone node), `at_least` (by a node beside others), `have_reader` (after a change of
  owner), `by_reader`, `of_node`.
- `cluster.worker`: our worker. `status`, `runs`, `completes`, numbered `logs`, `flow`, `spread`, `beat`; `published`.
- `cluster.groups`: XINFO. `of`, `the_one`, `done`, `undone`, `reader`, `has_reader`, `ever_read`, `deliver` (as a dead
  reader).
- `cluster.store`: the descriptor's queries. `job`, `jobs_of`, `logs`, `nodes`, `workers`, `becomes`, `is_status`;
  `seed`.
- `ghost`: a coordinator that we play. `acks(policy)`, `ack`, `acked_all`, `compete`, `leave`, `fall_silent`.
- `leaving`: a drain. `offer`, `offered`, `offers`, `counted`, `acks`, `alive_at`, `end`, `ends`, `exits`, `exits_by`.
- `deeds`: the tap. `writers(entry)`, `all_from`, `none_from`, `claimant`, `reads`, `touches`, `trims`,
  `of_nobody_else`.
- `wire`, `messages`: names, `Message`, `says(…)` for `expect`, enumerations; what the suite sends, and `Job`.

    @verifies("CO-DRAIN-06", isolation="disruptive", nodes=1, waits="load_shown + clean_drain")
    async def test_a_node_exits_once_all_its_jobs_are_acknowledged(cluster: Cluster) -> None:
        jobs = await cluster.jobs.owned(3)
        async with playing(cluster.ghost()) as ghost:
            ghost.acks(everything)
            leaving = cluster.leave(cluster.alone)
            await leaving.offered(*jobs)
            await leaving.exits("prompt_exit", since=await ghost.acked_all(jobs))

**Rules.** Moments are entry times, as intervals on our clock. Kinds of channels are constants of `wire` (`HANDOFF`,
`ACK` …). What only arranges blames the row that owns it already: `running`, `owned`, `led`, `last`, `offer`. A method
with a `bound` waits until `T.never(bound)` and warns past the bound; a value of the document is judged by the check:
`T.at_most("crash_handoff", since=last.at, seen=entry.at, tolerance="tolerance")`. On a shared deployment a check looks
at its own jobs and queues only. Whoever touches the lock, counts all jobs or reads all of a channel takes
`isolation="quiet"`; whoever ends or pauses a node, `"disruptive"`.

**What this suite reads from a descriptor.** `[observe] redis`; `[settings]` under the names of timings and limits (all
of the document's where it runs below spec time), and `rebalance` where the suite may switch it on; `[stimulus]`
enqueue, schedule, cancel; `[query]` job, jobs_of, nodes, logs, workers; `[seed]` job; `[dialect]`: see the catalogue.
"""
