"""Curves as small SVG pictures, drawn by hand: light and dark as the reader's page is, named at their ends, with their goal.

Invariant: a picture holds figures and their names only, and is the same for the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 212, 62, 52  # margins; names of curves stand in the right one
MOST_BANDS = 2  # of intervals in one picture: more hide each other
APART = 17  # pixels between the names of two curves
LIGHT = ("#1b5e9c", "#b4460f", "#2e7d4f", "#7a3e9d", "#8a6d00", "#b3265e")
DARK = ("#7db8ef", "#f0996a", "#7fcf9f", "#c79be6", "#d9bd5b", "#f28ab2")
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #333; } .title { font-size: 15px; font-weight: 600; fill: #111; }
.page { fill: #fff; } .grid { stroke: #e3e3e3; } .axis { stroke: #888; } .goal { stroke: #555; stroke-dasharray: 5 4; }
.curve { fill: none; stroke-width: 2; } .band { opacity: .16; stroke: none; }
"""
STYLE_DARK = """
text { fill: #c9c9c9; } .title { fill: #f0f0f0; } .page { fill: #16181c; } .grid { stroke: #2c3036; } .axis { stroke: #777; } .goal { stroke: #aaa; }
"""


class Curve(NamedTuple):
    """Points as (x, y, low, high)."""

    name: str
    points: Sequence[tuple[float, float, float, float]]


class Picture(NamedTuple):
    """What a picture shows. ``ticks``: places of the horizontal axis with their names. ``log``: it grows by factors.
    ``goal_of`` names the curve that ``goal`` is for, where it is not for all of them."""

    title: str
    across: str
    up: str
    curves: Sequence[Curve]
    ticks: Sequence[tuple[float, str]]
    log: bool = False
    goal: float | None = None
    goal_of: str = ""


def draw(picture: Picture) -> str:
    """The picture as an SVG document. Raises ValueError without a point."""
    highest = max([high for curve in picture.curves for *_, high in curve.points], default=0)
    if highest <= 0:
        raise ValueError(f"the picture {picture.title!r} has nothing to show")
    step = step_of(max(highest, picture.goal or 0))
    top = math.ceil(max(highest, picture.goal or 0) * 1.02 / step) * step
    places = [_across(picture, x) for x, _ in picture.ticks]
    parts = [_frame(picture, top, step)]
    parts += [
        f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{escape(name)}</text>'
        for x, (_, name) in zip(places, picture.ticks, strict=True)
    ]
    if picture.goal is not None:
        y = _up(picture.goal, top)
        parts.append(f'<line class="goal" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        name = f"goal of {picture.goal_of}" if picture.goal_of else "goal"
        parts.append(f'<text x="{LEFT + 22}" y="{y + 15:.1f}">{escape(name)}: at most {picture.goal:g}</text>')
    ends = name_heights([_up(curve.points[-1][1], top) for curve in picture.curves])
    for number, (curve, end) in enumerate(zip(picture.curves, ends, strict=True)):
        parts.append(_curve(picture, curve, number, top, end))
    colours = "".join(f".s{number}{{stroke:{one}}}.f{number}{{fill:{one}}}" for number, one in enumerate(LIGHT))
    dark = "".join(f".s{number}{{stroke:{one}}}.f{number}{{fill:{one}}}" for number, one in enumerate(DARK))
    style = f"<style>{STYLE}{colours}\n@media (prefers-color-scheme: dark) {{{STYLE_DARK}{dark}}}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(picture.title)}">'
    return "\n".join([head, style, *parts, "</svg>", ""])


def step_of(highest: float, most: int = 6) -> float:
    """A round distance (1, 2 or 5 times a power of ten) that divides a height into at most ``most`` steps."""
    power = 10.0 ** math.floor(math.log10(highest / most))
    return next(power * times for times in (1, 2, 5, 10) if highest / (power * times) <= most)


def name_heights(wanted: Sequence[float]) -> list[float]:
    """Where names stand that want to stand at these heights: in the same order, ``APART`` at least, inside the picture."""
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    heights = list(wanted)
    above = float(TOP - APART)
    for number in order:
        heights[number] = above = max(heights[number], above + APART)
    below = HEIGHT - BOTTOM + 2.0 + APART
    for number in reversed(order):
        heights[number] = below = min(heights[number], below - APART)
    return heights


def _across(picture: Picture, x: float) -> float:
    scale = math.log10 if picture.log else float
    first, last = scale(picture.ticks[0][0]), scale(picture.ticks[-1][0])
    return LEFT + 14 + (scale(x) - first) / ((last - first) or 1) * (WIDTH - RIGHT - LEFT - 28)


def _up(y: float, top: float) -> float:
    return HEIGHT - BOTTOM - y / top * (HEIGHT - BOTTOM - TOP)


def _frame(picture: Picture, top: float, step: float) -> str:
    parts = [f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
             f'<text class="title" x="16" y="26">{escape(picture.title)}</text>',
             f'<text x="16" y="46">{escape(picture.up)}</text>',
             f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(picture.across)}</text>']  # fmt: skip
    for number in range(round(top / step) + 1):
        y = _up(number * step, top)
        kind = "grid" if number else "axis"
        parts.append(f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number * step:g}</text>')
    return "\n".join(parts)


def _curve(picture: Picture, curve: Curve, number: int, top: float, end: float) -> str:
    colour = number % len(LIGHT)
    points = [(_across(picture, x), _up(y, top), _up(low, top), _up(high, top)) for x, y, low, high in curve.points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points)
    band = [f"{x:.1f},{high:.1f}" for x, _, _, high in points] + [f"{x:.1f},{low:.1f}" for x, _, low, _ in reversed(points)]  # fmt: skip
    parts = [f'<polyline class="curve s{colour}" points="{line}"/>']
    if len(picture.curves) <= MOST_BANDS:
        parts.insert(0, f'<polygon class="band f{colour}" points="{" ".join(band)}"/>')
    parts += [f'<circle class="f{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y, _, _ in points]
    x, y = points[-1][:2]
    parts.append(f'<line class="s{colour}" opacity=".5" x1="{x + 4:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT + 10}" y2="{end:.1f}"/>')  # fmt: skip
    parts.append(f'<text x="{WIDTH - RIGHT + 14}" y="{end + 4:.1f}">{escape(curve.name)}</text>')
    return "\n".join(parts)
