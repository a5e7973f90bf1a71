"""A seed draws the same dialects again, and in time all of them."""

from dataclasses import fields

from holdfast.reference.shared.stranger.traits import WIRE, NodeTraits, Traits, draw_node, draw_traits


def test_a_name_always_draws_the_same_traits_and_another_one_others() -> None:
    names = [f"{seed}:{node}#{number}" for seed in range(5) for node in "abc" for number in range(20)]
    assert [draw_traits(name) for name in names] == [draw_traits(name) for name in names]
    assert len({tuple(vars(draw_traits(name)).values())[1:] for name in names}) > 250
    assert [draw_node(name) for name in names] == [draw_node(name) for name in names]


def test_one_node_meets_every_form_of_every_trait_within_a_hundred_connections() -> None:
    drawn = [draw_traits(f"7:a#{number}") for number in range(100)]
    for trait, forms in WIRE.items():
        assert {getattr(each, trait) for each in drawn} == set(forms), trait
    assert {each.name for each in fields(Traits)} == {"name", *WIRE}


def test_ten_seeds_meet_every_trait_of_a_node() -> None:
    drawn = [draw_node(f"{seed}:{node}") for seed in range(1, 11) for node in "abc"]
    for trait in fields(NodeTraits):
        assert len({getattr(each, trait.name) for each in drawn}) > 1, trait.name


def test_without_a_draw_nothing_changes() -> None:
    plain = Traits("")
    assert {trait: getattr(plain, trait) in forms for trait, forms in WIRE.items()} == dict.fromkeys(WIRE, True)
