"""Plain lists of stamps: units, decimals, what is skipped, what is refused."""

import io
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firsthand_edge.errors import RecordingUnreadable, UsageError
from firsthand_edge.gate.stamp_lists import Unit, parse_stamps, read_stamps


def parse(text, unit=Unit.AUTO):
    return parse_stamps(io.StringIO(text), unit, place="list")


def times(text, unit=Unit.AUTO):
    return parse(text, unit).times_ns.tolist()


@pytest.mark.parametrize(
    ("text", "unit", "ns"),
    [
        ("1403636579763555584", Unit.NS, 1_403_636_579_763_555_584),
        ("1000000000000000000", Unit.NS, 10**18),
        ("999999999999999999", Unit.US, None),
        ("1403636579763555", Unit.US, 1_403_636_579_763_555_000),
        ("1000000000000000", Unit.US, 10**18),
        ("999999999999999", Unit.MS, None),
        ("1403636579763", Unit.MS, 1_403_636_579_763_000_000),
        ("1000000000000", Unit.MS, 10**18),
        ("999999999999", Unit.S, None),
        ("1403636579", Unit.S, 1_403_636_579_000_000_000),
        ("1000000000", Unit.S, 10**18),
        ("1305031453.374112", Unit.S, 1_305_031_453_374_112_000),
        ("0.5", Unit.S, 500_000_000),
    ],
)
def test_the_unit_is_found_by_size_or_decimal_point(text, unit, ns):
    if ns is None:  # the largest number of its unit lies after the year 2116
        with pytest.raises(UsageError, match=f"{text} {unit.value} is after the year 2116"):
            parse(text)
        return
    found = parse(text)
    assert (found.unit, found.times_ns.tolist()) == (unit, [ns])


@pytest.mark.parametrize("text", ["999999999", "0", "-1403636579763555584", "5\n1403636579763555584"])
def test_numbers_whose_unit_cannot_be_told_ask_for_it(text):
    with pytest.raises(UsageError, match="add `,unit=ns`"):
        parse(text)


@pytest.mark.parametrize(
    ("unit", "text", "ns"), [("ns", "5", 5), ("us", "5", 5_000), ("ms", "5.25", 5_250_000), ("s", "5", 5 * 10**9)]
)
def test_a_stated_unit_holds_for_any_number(unit, text, ns):
    assert times(text, Unit(unit)) == [ns]


def test_a_decimal_anywhere_makes_all_numbers_seconds():
    assert times("1305031102.5\n1305031103") == [1_305_031_102_500_000_000, 1_305_031_103_000_000_000]


def test_exponents_are_read_exactly():
    assert times("1.403636579763555584e+18", Unit.NS) == [1_403_636_579_763_555_584]
    assert times("1305031453.374112e0") == [1_305_031_453_374_112_000]


def test_digits_finer_than_a_nanosecond_are_rounded_and_counted():
    found = parse("0.1234567895\n0.1234567894\n-0.0000000005\n0.000000001")
    assert (found.times_ns.tolist(), found.rounded) == ([123_456_790, 123_456_789, 0, 1], 3)


def test_what_is_skipped():
    text = (
        "\ufeff# made by hand\r\n\r\n#timestamp [ns],filename\r\ntimestamp,frame\r\n  \r\n"
        "1403636579763555584,1.png\r\n// note\r\n1403636579813555456;2\r\n1403636579863555584\t3\r\n% end\r\n"
    )
    assert times(text) == [1_403_636_579_763_555_584, 1_403_636_579_813_555_456, 1_403_636_579_863_555_584]


def test_quoted_columns():
    assert times('"stamp","x"\n"1403636579763555584","1"\n') == [1_403_636_579_763_555_584]


def test_every_bad_line_is_named_with_its_number():
    with pytest.raises(RecordingUnreadable) as caught:
        parse("1403636579763555584\nabc\n1403636579813555456\nnan\n1_000\n12:30:01\n")
    said = str(caught.value)
    assert "list has 4 bad lines" in said
    for number, text in ((2, "abc"), (4, "nan"), (5, "1_000"), (6, "12:30:01")):
        assert f"line {number}: {text!r} is not a stamp" in said


def test_a_number_that_is_none_is_no_header():
    with pytest.raises(RecordingUnreadable, match="line 1: '12:30:01' is not a stamp"):
        parse("12:30:01\n1403636579763555584\n")


def test_bad_lines_are_bounded():
    with pytest.raises(RecordingUnreadable) as caught:
        parse("1403636579763555584\n" + "x" * 10_000 + "\n" + "bad\n" * 500)
    said = str(caught.value)
    assert "501 bad lines" in said
    assert "and 481 more" in said
    assert len(said) < 1_500


def test_an_empty_list_has_no_unit():
    found = parse("# nothing\nstamp\n")
    assert (found.times_ns.size, found.unit) == (0, Unit.AUTO)


def test_files(tmp_path):
    path = tmp_path / "stamps.csv"
    path.write_bytes(b"\xef\xbb\xbf1403636579763555584\r\n")
    assert read_stamps(path).times_ns.tolist() == [1_403_636_579_763_555_584]
    with pytest.raises(RecordingUnreadable, match=re.escape("cannot be read (No such file")):
        read_stamps(tmp_path / "absent.csv")
    with pytest.raises(RecordingUnreadable, match="cannot be read"):
        read_stamps(tmp_path)
    path.write_bytes(b"\xff\xfe\x00\x01" * 9)
    with pytest.raises(RecordingUnreadable, match="is not a text file"):
        read_stamps(path)


def test_a_pipe_is_read_and_its_progress_told():
    ours, theirs = os.pipe()
    os.write(theirs, b"1403636579763555584\n1403636579813555584\n")
    os.close(theirs)
    told = []
    found = read_stamps(Path(f"/dev/fd/{ours}"), progress=lambda done, total: told.append((done, total)))
    os.close(ours)
    assert found.times_ns.tolist() == [1_403_636_579_763_555_584, 1_403_636_579_813_555_584]
    assert told == [(40, 40)]


def test_what_never_ends_and_is_no_text_is_refused_at_once():
    with pytest.raises(RecordingUnreadable, match="is not a text file"):
        read_stamps(Path("/dev/zero"))


@given(st.lists(st.integers(0, (1 << 62) - 1), min_size=1, max_size=40))
def test_decimals_of_seconds_come_back_to_the_nanosecond(values):
    text = "\n".join(f"{v // 10**9}.{v % 10**9:09d}" for v in values)
    assert times(text) == values


@given(st.lists(st.integers(10**18, (1 << 62) - 1), min_size=1, max_size=40))
def test_nanoseconds_come_back(values):
    assert times("\n".join(map(str, values))) == values


@given(st.text(max_size=200))
def test_any_text_is_a_list_or_one_clear_error(text):
    said = "list"
    try:
        parse(text)
    except (RecordingUnreadable, UsageError) as exc:
        said = str(exc)
    assert said.startswith("list")


HEAD = "1700000000000000000\n1700000000016666667\n"


@pytest.mark.parametrize(
    "header",
    [
        ",x,y",
        "; comment",
        ";x;y",
        "-----",
        "+---+---+",
        ".header",
        "1st column: ns",
        "2024-01-01 recording",
        "01.02.2024",
        "/* x */",
        "60Hz",
        "1080p,60Hz",
        "3D,x",
        "-",
        "timestamp [ns]",
    ],
)
def test_header_lines_are_skipped(header):
    assert times(f"{header}\n{HEAD}") == [1_700_000_000_000_000_000, 1_700_000_000_016_666_667]


@pytest.mark.parametrize(
    "line",
    [
        "12:30:01",
        "1_000",
        "1.2.3",
        "1e5e5",
        "0x17979cfe362a0000",
        "nan",
        "-inf",
        "1700000000000000000ns",
        "17000000000x0000000,1.png",
        "2024-01-01T12:30:01.5",
        "-5-7",
    ],
)
def test_a_malformed_first_number_is_no_header(line):
    with pytest.raises(RecordingUnreadable, match=r"line 1: .* is not a stamp"):
        parse(f"{line}\n{HEAD}")


@pytest.mark.parametrize("text", ["2024-01-01 12:30:01\n2024-01-01 12:30:02\n", "1st\n2nd\n"])
def test_a_list_of_dates_alone_is_no_empty_list(text):
    with pytest.raises(RecordingUnreadable, match="2 bad lines: line 1"):
        parse(text)


def test_a_list_of_words_alone_is_no_empty_list():
    with pytest.raises(RecordingUnreadable, match=r"2 bad lines: line 3: 'left' is not a stamp; line 4: 'right'"):
        parse_stamps(["timestamp", "", "left", "right"], place="x.csv")
    assert parse_stamps(["timestamp"], place="x.csv").times_ns.size == 0


@pytest.mark.parametrize("comment", ["# a", "; a", "// a", "% a"])
def test_comments_are_skipped_anywhere(comment):
    assert len(times(f"{comment}\n{HEAD}{comment}\n{HEAD}{comment}\n")) == 4


def test_a_header_that_comes_again_is_skipped_and_counted():
    found = parse(f"stamp,frame\n{HEAD}stamp,frame\n{HEAD}\ufeffstamp,frame\n{HEAD}")
    assert (found.times_ns.size, found.repeated_headers) == (6, 2)
    assert parse(f"stamp,frame\nstamp,frame\n{HEAD}").repeated_headers == 0


def test_another_header_between_numbers_is_junk():
    with pytest.raises(RecordingUnreadable, match="1 bad line: line 4: 'stamp' is not a stamp"):
        parse(f"stamp,frame\n{HEAD}stamp,image\n{HEAD}")


def test_a_row_whose_stamp_is_missing_is_junk():
    with pytest.raises(RecordingUnreadable, match="line 3: '' is not a stamp"):
        parse(f"{HEAD},3.png\n")
