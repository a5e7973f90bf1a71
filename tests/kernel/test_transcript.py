from holdfast.check.transcript import Secrets, Transcript


def test_a_secret_keeps_its_alias_in_urls_and_bodies() -> None:
    secrets = Secrets()
    secrets.register("0b9d5f6e-1111-4222-8333-444455556666")
    secrets.register("5e9d5f6e-1111-4222-8333-444455556666")
    text = "GET /x?t=0b9d5f6e-1111-4222-8333-444455556666&u=5e9d5f6e-1111-4222-8333-444455556666"
    assert secrets.redact(text) == "GET /x?t=token#1&u=token#2"


def test_a_secret_inside_a_longer_word_is_found() -> None:
    secrets = Secrets()
    secrets.register("hf1.user.abcdef0123456789", "bearer")
    assert secrets.redact("x-hf1.user.abcdef0123456789-y") == "x-bearer#1-y"


def test_a_secret_first_seen_in_a_reply_hides_in_earlier_lines_too() -> None:
    transcript = Transcript(Secrets())
    transcript.sent("presents aaaaaaaa-1111-4222-8333-444455556666")
    transcript.secrets.register("aaaaaaaa-1111-4222-8333-444455556666")
    assert transcript.lines()[0].text == "presents token#1"


def test_a_long_transcript_keeps_its_ends_and_counts_the_middle() -> None:
    transcript = Transcript(Secrets(), head=2, tail=3)
    for number in range(10):
        transcript.note(f"line {number}")
    assert [line.text for line in transcript.lines()] == ["line 0", "line 1", "line 7", "line 8", "line 9"]
    assert transcript.dropped == 5


def test_a_huge_line_is_shortened_and_no_secret_is_cut_in_two() -> None:
    transcript = Transcript(Secrets())
    hidden = "hf1.user.abcdef0123456789"
    transcript.secrets.register(hidden)
    for before in range(3970, 4002):
        transcript.sent("x " * (before // 2) + " " * (before % 2) + hidden + "y" * 1_000_000)
    shown = [str(line.text) for line in transcript.lines()]
    assert all(len(text) < 4100 and "hf1" not in text for text in shown)
    assert shown[0].endswith(f"… and {len(hidden) + 1_000_000} more characters")
