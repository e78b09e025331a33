"""How values and tensors look when printed or put into strings."""

from __future__ import annotations

import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ocannl_lang.host.array import HostArray
from ocannl_lang.host.builtins import HOST_FUNCTIONS, HostContext, format_value
from ocannl_lang.host.formatting import show
from ocannl_lang.host.printing import array_text, type_text


def scalar(value, dtype: Any = np.float32):
    return HostArray(np.array(value, dtype), 0, 0, 0)


@pytest.mark.parametrize(
    "value, spec, text",
    [
        (3, "", "3"),
        (3.0, "", "3.0"),
        (0.123456, ".3f", "0.123"),
        (1234567, ",", "1,234,567"),
        (0.5, ".0%", "50%"),
        ("ab", ">4", "  ab"),
        (True, "", "true"),
        (None, ">5", " none"),
        (scalar(0.1), "", "0.1"),
        (scalar(0.1, np.float64), "", "0.1"),
        (scalar(0.125), ".2f", "0.12"),
        (scalar(3, np.int32), "03d", "003"),
        (scalar(1, np.uint8), "", "1"),
        (scalar(1.5, ml_dtypes.bfloat16), ".1f", "1.5"),
        (HostArray.of(np.array([[2.5]], np.float32)), ".1f", "2.5"),
        ([0.123, 4.0], ".1f", "[0.1, 4.0]"),
        ([1, "a", None, (True,), 0.5], "", '[1, "a", none, (true,), 0.5]'),
        ({"a": 1, "b": [2]}, "", "dict(a = 1, b = [2])"),
        ({"a b": 1}, "", 'dict([("a b", 1)])'),
        (range(2, 5), "", "2..5"),
    ],
)
def test_format(value, spec, text):
    assert format_value(value, spec) == text


@pytest.mark.parametrize("value, spec", [("a", "d"), (1.5, "d"), (1, "%%"), (None, "d"), (scalar(1), "x")])
def test_formats_that_do_not_go_with_the_value(value, spec):
    with pytest.raises(ValueError, match="the format `"):
        format_value(value, spec)


def test_strings_inside_of_lists_are_quoted_as_the_language_does():
    assert show(['say "{x}"\n']) == '["say \\"{{x}}\\"\\n"]'


@pytest.mark.parametrize(
    "rows, text",
    [
        ((2, 1, 0), "f32[2, 3 | 4]"),
        ((0, 2, 1), "f32[4 -> 2, 3]"),
        ((1, 1, 1), "f32[2 | 4 -> 3]"),
        ((3, 0, 0), "f32[2, 3, 4 | ]"),
        ((0, 0, 3), "f32[2, 3, 4 ->]"),
    ],
)
def test_types(rows, text):
    assert type_text(HostArray(np.zeros((2, 3, 4), np.float32), *rows)) == text


def test_types_with_bases():
    image = HostArray(np.zeros((2, 3), np.float32), 0, 2, 0, ("default", "rgb"))
    assert type_text(image) == "f32[2, 3:rgb]"


def test_a_vector_takes_one_line():
    assert array_text(HostArray(np.array([1, 2.5, -3], np.float32), 0, 1, 0)) == "f32[3]: 1.  2.5  -3."


def test_a_matrix_is_a_table_whose_corner_names_its_axes():
    text = array_text(HostArray(np.array([[0.1, -20], [np.nan, np.inf]], np.float32), 1, 1, 0))
    assert text.splitlines() == [
        "f32[2 | 2]",
        "batch \\ output      0      1",
        "             0    0.1  -20.",
        "             1    nan    inf",
    ]


def test_more_axes_make_more_tables():
    text = array_text(HostArray(np.arange(8).reshape(2, 1, 2, 2), 1, 1, 2))
    assert text.splitlines() == [
        "i64[2 | 2, 2 -> 1]",
        "batch 0, output 0",
        "1st input \\ 2nd input  0  1",
        "                    0  0  1",
        "                    1  2  3",
        "batch 1, output 0",
        "1st input \\ 2nd input  0  1",
        "                    0  4  5",
        "                    1  6  7",
    ]


def test_long_axes_show_their_ends():
    lines = array_text(HostArray(np.arange(4000).reshape(40, 100), 1, 1, 0)).splitlines()
    assert lines[1].split() == ["batch", "\\", "output", "0", "1", "2", "...", "97", "98", "99"]
    assert [line.split()[0] for line in lines[2:]] == ["0", "1", "2", "...", "37", "38", "39"]
    assert lines[-1].split() == ["39", "3900", "3901", "3902", "...", "3997", "3998", "3999"]


def test_wide_rows_are_cut_to_the_line():
    text = array_text(HostArray(np.arange(100).reshape(1, 100) + 0.5, 1, 1, 0))
    assert "..." in text
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("scale, form", [(1e-6, "1.e-06"), (1e9, "1.e+09"), (1.0, "1.")])
def test_tiny_and_huge_numbers(scale, form):
    assert form in array_text(HostArray.of(np.array([scale, 2 * scale], np.float32)))


def test_mixed_sizes_stay_plain_numbers():
    assert array_text(HostArray.of(np.array([0.001, 123.5], np.float32))) == "f32[2 | ]: 0.001  123.5"


def test_logic_and_narrow_floats():
    assert array_text(HostArray.of(np.array([1, 0], np.uint8))) == "u8[2 | ]: 1  0"
    assert array_text(HostArray.of(np.array([1, 0.5], ml_dtypes.bfloat16))) == "bf16[2 | ]: 1.  0.5"
    assert array_text(HostArray.of(np.zeros((0, 2)))) == "f64[0 | 2] without elements"


def test_print():
    out = io.StringIO()
    host = HostContext(stdout=out)
    HOST_FUNCTIONS["print"](host, ("loss", scalar(0.5), [1]), {})
    HOST_FUNCTIONS["print"](host, ("a", "b"), {"sep": "", "end": "!"})
    assert out.getvalue() == "loss 0.5 [1]\nab!"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_silent_away_from_a_terminal():
    error = io.StringIO()
    host = HostContext(stdout=io.StringIO(), stderr=error, interactive=False)
    bar = HOST_FUNCTIONS["progress"](host, ([1, 2],), {})
    assert len(bar) == 2 and list(bar) == [1, 2]
    assert error.getvalue() == ""


def test_progress_shows_on_a_terminal_and_ends_with_its_loop(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    error, out = Terminal(), Terminal()
    host = HostContext(stdout=out, stderr=error, interactive=True)
    for outer in HOST_FUNCTIONS["progress"](host, (range(3),), {}):
        for _ in HOST_FUNCTIONS["progress"](host, (range(2),), {}):
            break
        host.write(f"step {outer}\n")
    assert not host.bars.showing
    assert "3/3" in error.getvalue() and "step 2" in error.getvalue()
    assert out.getvalue() == ""


def test_progress_ends_after_an_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    out = io.StringIO()
    host = HostContext(stdout=out, stderr=Terminal(), interactive=True)
    bar = iter(HOST_FUNCTIONS["progress"](host, (range(3),), {}))
    next(bar)
    assert host.bars.showing
    host.write("to a file\n")
    assert out.getvalue() == "to a file\n"
    host.close()
    assert not host.bars.showing
    assert next(bar) == 1
