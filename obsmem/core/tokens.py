"""How many tokens a text costs, and the parts of it that fit. The unit everywhere is an estimated model token.

The estimate weighs character classes. Weights are a fit against provider-reported usage of real agent traffic: bias
+0.7 %, median error 5.5 %, where characters / 4 is 33 % too low. On prose it reads about 8 % high, the safe side for a
budget. SPEC.md section "Tokens" has the table.
"""

from __future__ import annotations

LETTER = 0.247
UPPER_EXTRA = 0.061
DIGIT = 0.775
PUNCTUATION = 0.779
DOUBLE_SPACE = 0.126
NEWLINE = 2.59
NON_ASCII = 0.255
CYRILLIC = 0.57
WIDE = 1.2


def _class_table() -> bytes:
    """Map each UTF-8 byte to its class; continuation bytes map to nothing that is counted."""
    table = bytearray(b"." * 256)  # '.' punctuation and control characters
    for byte in range(256):
        character = chr(byte)
        if byte < 0x80:
            if character.isdigit():
                table[byte] = ord("9")
            elif character.isupper():
                table[byte] = ord("A")
            elif character.islower():
                table[byte] = ord("a")
            elif character == "\n":
                table[byte] = ord("n")
            elif character in " \t\r":
                table[byte] = ord("_")
        elif byte < 0xC0:
            table[byte] = ord("_")  # continuation byte
        elif byte in (0xD0, 0xD1, 0xD2, 0xD3):
            table[byte] = ord("c")  # Cyrillic
        elif 0xE3 <= byte <= 0xED:
            table[byte] = ord("w")  # CJK, kana, Hangul
        else:
            table[byte] = ord("u")
    return bytes(table)


_CLASSES = _class_table()


def estimate(text: str) -> int:
    """Estimate the tokens of a text, rounded up; 0 for an empty one."""
    if not text:
        return 0
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASSES)
    count = classes.count
    upper = count(b"A")
    weight = (
        LETTER * (count(b"a") + upper)
        + UPPER_EXTRA * upper
        + DIGIT * count(b"9")
        + PUNCTUATION * count(b".")
        + NEWLINE * count(b"n")
        + DOUBLE_SPACE * raw.count(b"  ")
    )
    if not text.isascii():
        weight += WIDE * count(b"w") + CYRILLIC * count(b"c") + NON_ASCII * count(b"u")
    return int(weight + 0.999)


def clip(text: str, budget: int) -> str:
    """Return the longest beginning of ``text`` that costs at most ``budget`` tokens."""
    if estimate(text) <= budget:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def clip_tail(text: str, budget: int) -> str:
    """Return the longest end of ``text`` that costs at most ``budget`` tokens."""
    return clip(text[::-1], budget)[::-1]


def excerpt(text: str, budget: int, marker: str) -> str:
    """Return ``text`` whole, or its head and tail around ``marker``, within ``budget`` tokens.

    Empty if the marker alone does not fit.
    """
    if estimate(text) <= budget:
        return text
    room = budget - estimate(marker) - 1
    if room < 2:
        return ""
    head = clip(text, (room + 1) // 2)
    tail = clip_tail(text[len(head) :], room // 2)
    return head + marker + tail


def clip_characters(text: str, limit: int) -> str:
    """Return ``text`` in at most ``limit`` characters, with a mark that names how many were cut."""
    if len(text) <= limit:
        return text
    most = len(f" […{len(text)} more characters]")  # what the mark may take, whatever number it names
    kept = text[: max(0, limit - most)]
    return f"{kept} […{len(text) - len(kept)} more characters]"
