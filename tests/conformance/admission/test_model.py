from holdfast.conformance.admission.model import Model, Room
from holdfast.conformance.admission.wire import queued, refused, success


def _model(*capacities: int) -> Model:
    return Model({f"i{number}": Room(capacity) for number, capacity in enumerate(capacities, 1)})


def test_a_full_instance_queues_and_a_leave_promotes_the_first() -> None:
    model = _model(1)
    assert model.connect("a", "i1") == (success(),)
    assert model.connect("b", "i1") == (queued(position=0),)
    assert model.connect("c", "i1") == (queued(position=1),)
    assert model.leave("a") == ["b"]
    assert model.rooms["i1"].waiting == ["c"]


def test_one_session_per_character_everywhere() -> None:
    model = _model(1, 1)
    model.connect("a", "i1")
    assert model.connect("a", "i1") == model.connect("a", "i2") == (refused("ALREADY_IN_SESSION"),)


def test_who_gets_a_session_elsewhere_may_still_count_in_positions_but_is_never_promoted() -> None:
    model = _model(1, 1)
    for who in ("a", "b", "c"):
        model.connect(who, "i1")
    assert model.connect("b", "i2") == (success(),)
    assert list(model.rooms["i1"].places("c")) == [0, 1]
    assert list(model.limbo()) == [("b", "i1")]
    assert model.leave("a") == ["c"]
    assert list(model.limbo()) == []


def test_a_suspended_character_is_passed_over() -> None:
    model = _model(1)
    for who in ("a", "b", "c"):
        model.connect(who, "i1")
    model.suspend("b")
    assert model.connect("b", "i1") == (refused("CHARACTER_SUSPENDED"),)
    assert model.leave("a") == ["c"]


def test_drain_refuses_newcomers_and_tells_places() -> None:
    model = _model(1)
    for who in ("a", "b"):
        model.connect(who, "i1")
    model.rooms["i1"].draining = True
    assert model.connect("b", "i1") == (queued(position=0),)
    assert model.connect("c", "i1") == (refused("DRAIN_MODE"),)
    assert model.leave("a") == ["b"]


def test_a_second_line_is_left_to_each_target() -> None:
    model = _model(1, 1)
    for who, where in (("a", "i1"), ("b", "i1"), ("c", "i2")):
        model.connect(who, where)
    assert model.undecided("b", "i2")
    assert not model.undecided("b", "i1")
    model.leave("c")
    assert not model.undecided("b", "i2")


def test_in_a_race_for_a_slot_nobody_overtakes() -> None:
    model = _model(1)
    for who in ("a", "b", "c"):
        model.connect(who, "i1")
    legal, promoted = model.race("a", "n")
    assert (set(legal), promoted) == ({queued(position=2), queued(position=1)}, ["b"])
    legal, promoted = model.race("b", "c")
    assert (set(legal), promoted) == ({queued(position=0), success(), refused("ALREADY_IN_SESSION")}, ["c"])


def test_in_a_race_for_an_empty_line_both_orders_are_legal() -> None:
    model = _model(1)
    model.connect("a", "i1")
    legal, promoted = model.race("a", "n")
    assert (set(legal), promoted) == ({queued(position=0), success()}, ["n"])


def test_a_leave_above_a_lowered_capacity_frees_no_slot() -> None:
    model = _model(2)
    for who in ("a", "b"):
        model.connect(who, "i1")
    assert model.resize("i1", 1) == []
    legal, promoted = model.race("a", "n")
    assert (set(legal), promoted) == ({queued(position=0)}, [])
    assert model.resize("i1", 3) == ["n"]


def test_each_answer_and_poll_has_a_row_that_it_breaks() -> None:
    model = _model(1, 1)
    assert model.row_of("a", "i1") == "AD-ADMIT-01"
    for who in ("a", "b", "c"):
        model.connect(who, "i1")
    assert (model.row_of("a", "i2"), model.row_of("b", "i1"), model.row_of("d", "i1")) == (
        "AD-ADMIT-09",
        "AD-QUEUE-05",
        "AD-POLL-01",
    )
    rows = {who: model.row_of_success(who, "i1") for who in "abcd"}
    assert rows == {"a": "AD-ADMIT-09", "b": "AD-ADMIT-02", "c": "AD-QUEUE-06", "d": "AD-ADMIT-02"}
    assert (model.row_of_poll("b", "i1", "admitted"), model.row_of_poll("b", "i1", "queued")) == (
        "AD-QUEUE-10",
        "AD-QUEUE-01",
    )
    assert (model.row_of_poll("a", "i1", "queued"), model.row_of_poll("d", "i1", "queued")) == (
        "AD-ADMIT-09",
        "AD-POLL-01",
    )
    model.suspend("b")
    assert (model.row_of("b", "i1"), model.row_of_poll("b", "i1", "admitted")) == ("AD-ADMIT-07", "AD-QUEUE-12")
