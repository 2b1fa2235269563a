"""What the report's figures draw: every series, one look for each variant, names that are tied to
their lines; and as SVG, text that stays text in colours that the page sets."""

from __future__ import annotations

import re

import pytest
from matplotlib.text import Annotation
from test_report import BSP, PUSH, rows, trial

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.report import figures, pictures
from tftune.report.series import all_series
from tftune.report.svg import svg
from tftune.report.tables import lines

OKABE_ITO = {"#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7"}
"""Without black and yellow: Okabe and Ito 2008, "Color Universal Design"."""


def decodes(batch: int, kv_lens: tuple[int, ...] = (1024, 4096), q_heads: int = 96) -> list[object]:
    return [FlashDecode(batch, q_heads, 12, 128, kv_len, 8) for kv_len in kv_lens]


def test_every_variant_has_a_look_of_its_own_and_an_okabe_ito_colour() -> None:
    assert figures.look("unheard") == figures.look("unheard") in figures.SPARE_LOOKS
    for name in OPS:
        looks = [figures.look(variant) for variant in operation(name).space.variants]
        assert len({look.colour for look in looks}) == len(looks)
        assert {look.colour for look in looks} - {figures.QUIET} <= OKABE_ITO
        fused = [figures.look(v) for v in operation(name).space.variants if v != "bsp"]
        assert len({look.mark for look in fused}) == len(fused)


def test_series_differ_in_size_alone_and_the_papers_come_first() -> None:
    shapes = [AllGatherGemm(m, n, 8192, 8) for n in (1280, 3584) for m in (64, 16)]
    shapes += [AllGatherGemm(16, 3584, 8192, 8, dtype="bf16")]
    found = all_series(lines([trial(BSP, 20.0, shape=shape) for shape in shapes]))
    titles = [each.name.replace("\u00a0", " ") for each in found]
    assert titles == ["N = 3584, K = 8192 (paper)", "N = 1280, K = 8192", "N = 3584, K = 8192"]
    sizes = [[line.shape.to_dict()["m"] for line in each.lines] for each in found]
    assert sizes == [[16, 64], [16, 64], [16]]
    assert [each.layout[0] for each in found] == ["fp16", "fp16", "bf16"]


def test_a_number_of_ranks_that_the_papers_sizes_do_not_share_has_no_series_of_the_paper() -> None:
    shape = AllGatherGemm(9, 3584, 8193, 3)
    (found,) = all_series(lines([trial(BSP, 20.0, shape=shape)]))
    assert not found.is_papers


def test_the_overview_has_a_line_for_every_series_and_names_those_of_the_paper() -> None:
    shapes = [shape for batch in (1, 4) for shape in decodes(batch)] + decodes(1, q_heads=48)
    found = [trial(BSP, 40.0, shape=shape) for shape in shapes]
    found += [trial(Config("fused"), 20.0, bsp_us=40.0, shape=shape) for shape in shapes]
    with figures.style():
        figure = figures.overview_figure(all_series(lines(found)))
    assert figure is not None
    (ax,) = figure.axes
    drawn = [line for line in ax.lines if len(line.get_xdata()) == 2 and line.get_zorder() > 1]
    assert len(drawn) == 3 and all(list(line.get_ydata()) == [2, 2] for line in drawn)
    assert sum(line.get_color() == figures.INK for line in drawn) == 2
    names = {text.get_text().replace("\u00a0", " ") for text in ax.texts}
    assert names == {"paper, batch = 1", "paper, batch = 4", "BSP"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["fused"]


def test_without_bsp_there_is_no_overview() -> None:
    assert figures.overview_figure(all_series(lines([trial(PUSH, 20.0)]))) is None


def test_the_figures_draw_what_the_lines_say() -> None:
    (series,) = all_series(lines(rows()))
    with figures.style():
        times = figures.time_figure(series).axes[0]
        ratios = figures.speedup_figure(series).axes[0]
    push = next(line for line in times.lines if line.get_color() == figures.look("push").colour)
    assert list(push.get_xdata()) == [64, 128, 256]
    assert list(push.get_ydata()) == pytest.approx([25, 50, 80])
    assert (times.get_xscale(), times.get_yscale(), ratios.get_yscale()) == ("log", "log", "log")
    shown = next(line for line in ratios.lines if line.get_color() == figures.look("push").colour)
    assert list(shown.get_ydata()) == pytest.approx([2.0, 1.0, 0.625])
    assert times.get_xlabel() == ratios.get_xlabel() == "M"


@pytest.mark.parametrize("bench, bars", [("node", 3), ("model", 0)])
def test_bars_stand_only_where_there_are_intervals(bench: str, bars: int) -> None:
    (series,) = all_series(lines(rows(bench)))
    with figures.style():
        ax = figures.speedup_figure(series).axes[0]
    assert [len(drawn.get_segments()) for drawn in ax.collections] == [bars, bars]


@pytest.mark.parametrize("figure", [figures.time_figure, figures.speedup_figure])
def test_a_name_is_tied_to_the_end_of_its_line(figure: object) -> None:
    (series,) = all_series(lines(rows()))
    with figures.style():
        ax = figure(series).axes[0]  # type: ignore[operator]
    ends = {(line.get_xdata()[-1], line.get_ydata()[-1]) for line in ax.lines}
    named = [text for text in ax.texts if isinstance(text, Annotation)]
    assert {text.get_text() for text in named} == {"BSP", "pull", "push"}
    for text in named:
        assert text.arrow_patch is not None
        assert text.xy in ends or (text.get_text() == "BSP" and text.xy == (256, 1.0))
        assert 1 < text.get_position()[0] < 1.2


def test_one_problem_on_more_ranks_is_strong_scaling() -> None:
    shapes = [FlashDecode(1, 64, 8, 128, 65_536 // world, world) for world in (1, 2, 4, 8)]
    found = [trial(BSP, 160 / shape.world + 20, shape=shape) for shape in shapes]
    found += [trial(Config("persistent"), 160 / shape.world + 5, shape=shape) for shape in shapes]
    with figures.style():
        (panel,) = figures.scaling_figure(lines(found)).axes
    colour = figures.look("persistent").colour
    times = next(line for line in panel.lines if line.get_color() == colour)
    assert list(times.get_xdata()) == [1, 2, 4, 8] and panel.get_xlabel() == "ranks"
    assert list(times.get_ydata()) == pytest.approx([165, 85, 45, 25])
    ideal = next(line for line in panel.lines if line.get_linestyle() == "--")
    assert list(ideal.get_ydata()) == pytest.approx([165, 82.5, 41.25, 20.625])


def test_sizes_are_each_operations_own() -> None:
    (series,) = all_series(lines([trial(BSP, 20.0, shape=s) for s in decodes(1, (1024, 32_768))]))
    with figures.style():
        panel = figures.time_figure(series).axes[0]
    assert panel.get_xlabel() == "kv_len"
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["1024", "32K"]


def test_a_narrow_range_of_ratios_has_ticks() -> None:
    """On one GPU every variant is near BSP: an axis with `1x` alone says nothing."""
    found = [trial(BSP, 50.0), trial(PUSH, 49.0, bsp_us=50.0)]
    with figures.style():
        ax = figures.speedup_figure(*all_series(lines(found))).axes[0]
    assert len(ax.get_yticks()) >= 3


def test_an_svg_is_text_in_the_pages_colours_with_ids_of_its_own() -> None:
    (series,) = all_series(lines(rows()))
    with figures.style():
        one, two = (svg(figures.speedup_figure(series), name, "it's <so>") for name in "ab")
    assert one.startswith("<svg ") and "aria-label='it&#x27;s &lt;so&gt;'" in one
    assert all(f">{name}</text>" in one for name in ("push", "pull", "BSP", "M"))
    ids = [set(re.findall(r' id="([^"]*)"', each)) for each in (one, two)]
    assert all(ids) and ids[0].isdisjoint(ids[1])
    assert set(re.findall(r"(?:href=\"|url\()#(\w+)", one)) == ids[0]
    assert "var(--ink)" in one and figures.INK not in one and "<style" not in one
    assert "font-family" not in one and "<metadata" not in one


def test_a_figure_says_the_ends_of_its_lines() -> None:
    (series,) = all_series(lines(rows("model")))
    with figures.style():
        (speedups,), (times,) = pictures.speedup_panels([series]), pictures.time_panels([series])
    assert "Speed-up over BSP against M, mode graph, modelled, N" in speedups
    assert "push 2.00 at M = 64, 0.62 at 256" in speedups
    assert "Time in µs against M" in times and "BSP 50.0 at M = 64, 50.0 at 256" in times
