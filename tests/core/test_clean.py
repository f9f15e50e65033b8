"""Text that a reader cannot see goes; every visible character stays."""

import json

from obsmem.core.clean import escape_unseen, leave_out_encoded, one_line, strip_controls


def test_terminal_colours_and_controls_go() -> None:
    text = "\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07plain\x00\x7f\x9b tab\tnew\nline"
    assert strip_controls(text) == "red plain tab\tnew\nline"


def test_progress_bars_become_lines() -> None:
    assert strip_controls("10%\r20%\r\ndone") == "10%\n20%\ndone"


def test_unseen_orders_go() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    assert strip_controls(f"a{hidden}b\u202ec\u200bd") == "abcd"


def test_joined_emoji_and_other_scripts_stay() -> None:
    text = "👩\u200d💻 日本語 Ünïcödé"
    assert strip_controls(text) == text


def test_encoded_bulk_is_left_out_and_rulers_stay() -> None:
    assert leave_out_encoded("x " + "iVBORw0K" * 40 + "== y") == "x [322 characters of encoded data] y"
    assert leave_out_encoded("A" * 300) == "A" * 300
    assert leave_out_encoded("iVBORw0K" * 10) == "iVBORw0K" * 10
    assert leave_out_encoded("ü" + "aB1+" * 50 + "\ud800") == "ü[200 characters of encoded data]\ud800"
    assert leave_out_encoded("aB1+" * 49 + "aB1") == "aB1+" * 49 + "aB1"


def test_one_line_folds_all_whitespace() -> None:
    assert one_line("  a\n\n b\t\u2028c ") == "a b c"


def test_a_json_document_with_its_unseen_characters_escaped_is_the_same_value() -> None:
    value = ["\x9b31m \u202e \ufeff \x7f \U000e0041 \U0001f469\u200d ä \n", {"\u2066": 1}]
    written = escape_unseen(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(written) == value
    assert not any(sign in written for sign in "\x9b\u202e\ufeff\x7f\U000e0041\u2066")
    assert "ä" in written and "\u200d" in written
