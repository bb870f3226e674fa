"""Draws with matplotlib so that a chart belongs to the page that it is put into.

Colours are written as CSS custom properties and text as text in the page's own font: dark mode, printing, search
and screen readers work. What a chart shows can be found in it again: an artist with the gid `data:NAME` becomes an
element with the attribute `data-series="NAME"`.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from types import TracebackType
from typing import Self

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from karpstack.text.shown import visible

from .units import clock

# Each colour is drawn as a value that nothing else has, and then replaced by the stylesheet's custom property.
_NAMES = (
    "ink", "muted", "rule", "surface", "accent", "accent-soft", "wait", "alert", "quiet",
    "phase-1", "phase-2", "phase-3",
)  # fmt: skip
COLOURS = {name: f"#0b{index:02x}fe" for index, name in enumerate(_NAMES, 1)}
_PROPERTIES = {value: f"var(--{name})" for name, value in COLOURS.items()}

HATCH = "/////"
_STYLE: dict[str, object] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 11,
    "figure.dpi": 72,
    "hatch.linewidth": 1.1,
    "lines.solid_capstyle": "butt",
    "text.color": COLOURS["muted"],
    "axes.labelcolor": COLOURS["muted"],
    "xtick.color": COLOURS["muted"],
    "ytick.color": COLOURS["muted"],
    "axes.edgecolor": COLOURS["rule"],
    "hatch.color": COLOURS["surface"],
}
_METADATA = ("Creator", "Date", "Format", "Type")  # left out
_CLOCK = (30, 60, 120, 180, 300, 600, 900, 1800, 3600)
_POINTS = 240  # more than a chart has pixels for


@dataclass(frozen=True)
class Key:
    """An entry of a legend.

    Attributes:
        name: What it stands for.
        colour: Its custom property, without the dashes.
        style: `line`, `dashed`, `dotted`, `moment`, `area`, `shade` or `hatched`.
    """

    name: str
    colour: str
    style: str = "line"


@dataclass(frozen=True)
class Chart:
    """A chart for a page.

    Attributes:
        title: What it shows, with its unit.
        svg: The drawing.
        legend: What is drawn how.
        wide: The same for a wide page, where that is another drawing.
        note: What must be known to read it.
    """

    title: str
    svg: Markup
    legend: tuple[Key, ...] = ()
    wide: Markup | None = None
    note: str = ""


class Drawing:
    """One figure; a context manager, because matplotlib reads settings whenever an artist is made.

    Args:
        width: Its width in CSS pixels at its natural size.
        height: Likewise.
    """

    def __init__(self, width: float, height: float) -> None:
        self._size = (width, height)
        self._settings = mpl.rc_context(_STYLE)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        width, height = self._size
        self._settings.__enter__()
        self._figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        FigureCanvasSVG(self._figure)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._settings.__exit__(kind, error, trace)

    def axes(self, left: float = 40, right: float = 14, top: float = 12, bottom: float = 34) -> Axes:
        """Axes with the given margins in pixels: a base line, and nothing else that is not data."""
        width, height = self._size
        axes = self._figure.add_axes(
            (left / width, bottom / height, (width - left - right) / width, (height - top - bottom) / height)
        )
        axes.set_facecolor("none")
        axes.set_axisbelow(True)
        for side in ("top", "left", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(length=0, pad=5)
        axes.tick_params(axis="x", pad=9)  # below the least label of the other axis
        return axes

    def svg(self, title: str, description: str) -> Markup:
        """The drawing as an element for HTML.

        Args:
            title: Its accessible name.
            description: What is to be seen, for those who cannot see it.
        """
        salt = hashlib.sha256(f"{title}\0{description}\0{self._size}".encode()).hexdigest()[:10]
        output = io.StringIO()
        self._figure.patch.set_visible(False)
        with mpl.rc_context({"svg.hashsalt": salt}):
            self._figure.savefig(output, format="svg", metadata=dict.fromkeys(_METADATA), dpi=72)
        return Markup(_for_html(visible(output.getvalue()), title, description, salt, self._size))  # noqa: S704


def time_axis(axes: Axes, end: float, since: str) -> None:
    """An x axis in seconds from 0 to `end`, in minutes and seconds where it is long.

    Args:
        axes: Whose.
        end: Its end in seconds.
        since: What it counts from, for its label.
    """
    axes.set_xlim(0, max(end, 0.001))
    long = end > 150
    axes.xaxis.set_major_locator(
        MultipleLocator(_step(end)) if long else MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3)
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: clock(value) if long else f"{value:g}"))
    axes.set_xlabel(f"{'min:s' if long else 'seconds'} {since}", loc="left", labelpad=4)


def _step(end: float) -> float:
    """Seconds between the ticks of a long axis: such as a clock has, and five at most."""
    hour = 3600
    return next((step for step in _CLOCK if end / step <= 5), hour * -(-end // (5 * hour)))


def value_axis(axes: Axes, top: float, unit: str, *, whole: bool = False) -> None:
    """A y axis from 0, with quiet lines, its unit above."""
    axes.set_ylim(0, top * 1.06 if top > 0 else 1)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=whole, min_n_ticks=2))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.grid(axis="y", color=COLOURS["rule"], linewidth=1)
    axes.annotate(unit, (0, 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points", ha="left")


def thin(rows: Sequence[Sequence[float]], limit: int = _POINTS) -> list[Sequence[float]]:
    """Rows of a step function, no more than can be seen: of each stretch the first, the highest and the last."""
    if len(rows) <= limit:
        return list(rows)
    size = -(-3 * len(rows) // limit)
    kept: list[Sequence[float]] = []
    for start in range(0, len(rows), size):
        stretch = rows[start : start + size]
        highest = [max(range(len(stretch)), key=lambda i: stretch[i][column]) for column in range(1, len(stretch[0]))]
        kept += [stretch[i] for i in sorted({0, len(stretch) - 1, *highest})]
    return kept


def quantiles(values: Sequence[float], limit: int = _POINTS) -> list[tuple[float, float]]:
    """The empirical distribution: (value, share of values that are at most as large), from (least value, 0)."""
    ordered = sorted(values)
    if not ordered:
        return []
    n = len(ordered)
    indices = range(n) if n <= limit else sorted({round(i * (n - 1) / (limit - 1)) for i in range(limit)})
    return [(ordered[0], 0.0), *((ordered[i], (i + 1) / n) for i in indices)]


_PATTERN = r'<pattern id="([^"]*)"[^>]*>\s*<rect [^>]*fill="([^"]*)"/>.*?</pattern>'


def _hatched(match: re.Match[str]) -> str:
    """A hatch pattern in three elements instead of dozens of lines."""
    return (
        f'<pattern id="{match[1]}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="5" height="5" fill="{match[2]}"/><rect width="2" height="5" fill="{COLOURS["surface"]}"/>'
        "</pattern>"
    )


def _for_html(text: str, title: str, description: str, salt: str, size: tuple[float, float]) -> str:
    """What matplotlib writes as a file, as an element of a page: no prologue, no fixed size or font, unique names."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    referenced = set(re.findall(r"#([\w-]+)\)?\"?", text))
    text = re.sub(
        r' id="([^"]*)"',
        lambda match: (
            f' data-series="{match[1].removeprefix("data:")}"'
            if match[1].startswith("data:")
            else f' id="{salt}-{match[1]}"'
            if match[1] in referenced
            else ""
        ),
        text,
    )
    text = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{salt}-", text)
    text = re.sub(r"font-family: [^;\"]*(?:; )?", "", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    text = re.sub(_PATTERN, _hatched, text, flags=re.DOTALL)
    text = re.sub(r"#0b[0-9a-f]{2}fe", lambda match: _PROPERTIES.get(match[0], match[0]), text)
    text = re.sub(r"<style[^>]*>\*\{[^<]*</style>", "", text)
    text = re.sub(r"\n\s*", "\n", text)
    width, height = size
    head = (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="{salt}-t {salt}-d" '
        f'style="--w:{width:g}px">'
        f'<title id="{salt}-t">{escape(visible(title))}</title>'
        f'<desc id="{salt}-d">{escape(visible(description))}</desc>'
    )
    return head + text[text.index(">") + 1 :].strip()
