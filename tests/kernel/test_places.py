"""The books of the places that runners share, without any runner."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.run.places import Asked, Places

A, B = 1, 2


def test_places_are_given_until_none_is_left_and_then_in_the_order_of_asking() -> None:
    places = Places({"start": 2, "work": 4})
    assert places.ask(Asked(A, 1), "start", 1) == [Asked(A, 1)]
    assert places.ask(Asked(A, 2), "start", 1) == [Asked(A, 2)]
    assert places.ask(Asked(B, 1), "start", 1) == []
    assert places.ask(Asked(A, 3), "start", 1) == []
    assert places.give_back(Asked(A, 1)) == [Asked(B, 1)]
    assert places.give_back(Asked(A, 2)) == [Asked(A, 3)]


def test_nobody_overtakes_one_who_waits_for_many_places() -> None:
    places = Places({"work": 4})
    places.ask(Asked(A, 1), "work", 2)
    assert places.ask(Asked(B, 1), "work", 4) == []
    assert places.ask(Asked(A, 2), "work", 2) == [], "two are free, but another was first"
    assert places.give_back(Asked(A, 1)) == [Asked(B, 1)]
    assert places.give_back(Asked(B, 1)) == [Asked(A, 2)]


def test_lanes_do_not_hold_each_other_up() -> None:
    places = Places({"start": 1, "work": 1})
    assert places.ask(Asked(A, 1), "start", 1) == [Asked(A, 1)]
    assert places.ask(Asked(A, 2), "work", 1) == [Asked(A, 2)]


def test_more_than_there_are_means_all() -> None:
    places = Places({"work": 4})
    assert places.ask(Asked(A, 1), "work", 9) == [Asked(A, 1)]
    assert places.ask(Asked(B, 1), "work", 1) == []


def test_a_question_can_be_withdrawn_and_lets_those_behind_it_go() -> None:
    places = Places({"work": 4})
    places.ask(Asked(A, 1), "work", 2)
    places.ask(Asked(B, 1), "work", 4)
    places.ask(Asked(A, 2), "work", 2)
    assert places.give_back(Asked(B, 1)) == [Asked(A, 2)]


def test_what_an_owner_had_is_free_when_it_is_gone_and_its_questions_are_forgotten() -> None:
    places = Places({"start": 2, "work": 4})
    places.ask(Asked(A, 1), "work", 2)
    places.ask(Asked(A, 2), "start", 1)
    places.ask(Asked(A, 3), "work", 4)
    places.ask(Asked(B, 1), "work", 2)
    places.ask(Asked(B, 2), "work", 2)
    assert places.forget(A) == [Asked(B, 1), Asked(B, 2)]
    assert (places.taken("start"), places.taken("work")) == (0, 4)
    assert places.forget(A) == []


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "give", "forget"]), st.integers(1, 3), st.integers(1, 5)), max_size=60
)


@given(STEPS)
def test_no_lane_is_ever_overfull_and_in_the_end_everything_is_free(steps: list[tuple[str, int, int]]) -> None:
    places, asked, granted = Places({"work": 4}), dict[Asked, int](), list[Asked]()
    for number, (step, owner, weight) in enumerate(steps):
        match step:
            case "ask":
                asked[Asked(owner, number)] = weight
                granted += places.ask(Asked(owner, number), "work", weight)
            case "give" if asked:
                one = list(asked)[weight % len(asked)]
                del asked[one]
                granted += places.give_back(one)
            case _:
                asked = {each: had for each, had in asked.items() if each.owner != owner}
                granted += places.forget(owner)
        held = sum(min(4, weight) for each, weight in asked.items() if each in granted)
        assert places.taken("work") == held <= 4
    assert len(granted) == len(set(granted)), "no question is answered twice"
    for each in list(asked):
        granted += places.give_back(each)
    assert places.taken("work") == 0
