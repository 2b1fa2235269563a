"""The report: which trial stands for a variant, what counts as a win, and a page that holds its
figures and says what was modelled."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic

from tftune.db.evidence import measurement
from tftune.db.trial import Failure, Measurement, Outcome, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.registry import OPS, operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.artifact import Mode
from tftune.models.layout import LayoutModel
from tftune.models.tree.tree import Leaf, Node, Split
from tftune.report import tables
from tftune.report.report import Page, write

BSP = Config("bsp", form="gather_copy")
PULL = Config("pull", block_m=64)
PUSH = Config("push", block_m=64)
RUN = Run(
    "r1", "h200x8", "node", {"torch": "2.11.0", "triton": "3.6.0"}, "2026-11-20T10:00:00+00:00", {}
)
ROUNDS = tuple(range(-4, 5))


def trial(
    config: Config,
    us: float,
    *,
    m: int = 64,
    mode: str = "graph",
    bench: str = "node",
    bsp_us: float = 0.0,
    **changes: object,
) -> Trial:
    """A trial with nine rounds around `us` (one on the model bench), beside BSP at `bsp_us` where
    that is given."""
    samples = (us,) if bench == "model" else tuple(us * (1 + 0.001 * i) for i in ROUNDS)
    beside = tuple(bsp_us for _ in samples) if bsp_us else ()
    made = Trial(
        AllGatherGemm(m, 3584, 8192, 8),
        config,
        mode,
        "h200x8",
        bench,
        "r1",
        "k1",
        Measurement(samples, beside, None),
    )
    return replace(made, **changes)


def failed(config: Config, kind: str = "hang") -> Trial:
    return replace(trial(config, 1.0), outcome=Failure(kind, "passed 20 s"))


def rows(bench: str = "node") -> list[Trial]:
    """BSP, pull and push at three sizes: push wins at M=64, ties at M=128 and loses at M=256; one
    failure."""
    made = [failed(Config("pull", block_m=256))]
    for m, push_us in ((64, 25.0), (128, 50.0), (256, 80.0)):
        common = dict(m=m, bench=bench)
        made += [
            trial(BSP, 50.0, **common),
            trial(PULL, 100.0, bsp_us=50.0, **common),
            trial(PUSH, push_us, bsp_us=50.0, **common),
        ]
    return made


def page(
    bench: str = "node",
    learned: Mapping[str, Mode | str] | None = None,
    trials: list[Trial] | None = None,
) -> Page:
    return Page("all_gather_gemm", "h200x8", bench, trials or rows(bench), [RUN], learned or {})


def model(root: Node | None, **changes: object) -> LayoutModel:
    """A layout of BSP, pull and push with this tree; by default leaves that name push, pull and
    BSP."""
    shapes = synthetic.SHAPES[:3]
    return replace(synthetic.model(shapes), configs=(BSP, PULL, PUSH), root=root, **changes)  # type: ignore[arg-type]


def tree() -> Split:
    push, pull, bsp = (Leaf(numbers, 2, 0.02, ()) for numbers in ((2,), (1, 2, 0), (0,)))
    return Split("m", 96.0, push, Split("gflop", 7.5, pull, bsp))


def mode(*models: LayoutModel) -> Mode:
    return Mode({each.layout: each for each in models}, {})


def test_a_line_names_the_fastest_and_its_ratio_in_the_same_rounds() -> None:
    small, middle, large = tables.lines(rows())
    assert (small.winner.config, small.fused_wins, small.evaluations) == (PUSH, True, 4)
    assert (
        small.ratio is not None
        and small.ratio[0] == pytest.approx(2.0)
        and 1.98 < small.ratio[1] < 2 < small.ratio[2] < 2.02
    )
    assert middle.winner.config == BSP or middle.ties_with_bsp
    assert (large.winner.config, large.ratio, large.fused_wins) == (BSP, (1.0, 1.0, 1.0), False)


def test_an_interval_that_holds_one_is_a_tie_and_no_win() -> None:
    (line,) = tables.lines([trial(BSP, 50.0), trial(PUSH, 49.95, bsp_us=50.0)])
    assert line.winner.config == PUSH and line.ties_with_bsp and not line.fused_wins
    assert tables.headline([line]) == [
        "graph: a fused variant beats BSP on 0 of 1 shapes; 1 ties (measured)."
    ]
    assert "push (ties with BSP)" in tables.cells(line, ["bsp", "push"])


def test_a_final_row_counts_before_a_faster_search_row() -> None:
    (line,) = tables.lines(
        [
            trial(BSP, 50.0),
            trial(PUSH, 20.0, bsp_us=50.0),
            trial(PUSH, 40.0, bsp_us=50.0, stage="final"),
        ]
    )
    assert line.median_us("push") == 40.0


def test_rows_of_an_older_kernel_are_left_out() -> None:
    old = trial(PUSH, 20.0, bsp_us=50.0, code="k0", created="2026-11-19")
    (line,) = tables.lines(
        [trial(BSP, 50.0), trial(PUSH, 40.0, bsp_us=50.0, created="2026-11-20"), old]
    )
    assert line.median_us("push") == 40.0


def test_without_bsp_there_is_no_ratio() -> None:
    (line,) = tables.lines([trial(PULL, 30.0), trial(PUSH, 20.0)])
    assert line.winner.config == PUSH and line.ratio is None
    assert tables.cells(line, ["bsp", "pull", "push"])[3:8] == ["-", "30.0", "20.0", "push", "-"]


@pytest.mark.parametrize("outcome", [Failure("wrong", "off by 3")])
def test_a_failure_has_no_times(outcome: Outcome) -> None:
    with pytest.raises(ValueError, match="off by 3"):
        measurement(replace(trial(PUSH, 1.0), outcome=outcome))
    assert tables.lines([replace(trial(PUSH, 1.0), outcome=outcome)]) == []


def test_the_page_holds_its_figures_and_its_provenance(tmp_path: Path) -> None:
    paths = write(
        page(learned={"graph": mode(model(tree())), "eager": "no rows of mode eager"}),
        tmp_path / "deep/report",
    )
    html = paths[0].read_text()
    stems = ["time", "speedup", "tree_graph_0", "failures"]
    assert [path.name for path in paths] == [
        f"all_gather_gemm__h200x8__node{end}"
        for end in (".html", *(f"__{stem}.png" for stem in stems))
    ]
    embedded = [
        base64.b64decode(data) for data in re.findall(r"src='data:image/png;base64,([^']+)'", html)
    ]
    assert {path.read_bytes() for path in paths[1:]} == set(embedded) and all(
        data.startswith(b"\x89PNG") for data in embedded
    )
    assert "<title>all_gather_gemm on h200x8, measured 2026-11-20</title>" in html
    assert all(
        text in html
        for text in (
            "torch 2.11.0",
            "no rows of mode eager",
            "1 of 10 trials failed",
            "m=64,n=3584,k=8192,world=8",
        )
    )
    assert "http" not in html and "modelled" not in re.sub(
        r"<style>.*?</style>", "", html, flags=re.DOTALL
    )


def test_each_layout_that_has_a_tree_shows_it_in_the_order_of_the_mode(tmp_path: Path) -> None:
    """A layout without one has no figure; a mode without any says so."""
    layouts = [(dtype, "m", "nk", 2) for dtype in ("bf16", "fp16")]
    made = [model(tree(), layout=layout) for layout in layouts]
    bare = model(None, layout=("fp16", "k", "nk", 2))
    paths = write(
        page(learned={"graph": mode(made[0], bare, made[1]), "eager": mode(bare)}), tmp_path
    )
    assert [path.stem.rpartition("__")[2] for path in paths[1:]] == [
        "time",
        "speedup",
        "tree_graph_0",
        "tree_graph_1",
        "failures",
    ]
    html = paths[0].read_text()
    titles = [f"dtype={dtype},shard=m,b_layout=nk,world=2" for dtype in ("bf16", "fp16")]
    assert (
        re.findall(r"<p class='quiet'>(dtype=[^<]*)</p>", html) == titles
        and html.count("Which configs the selector chooses among") == 4
    )
    (eager,) = re.findall(r"<h2>Tree, eager</h2>\n(.*)", html)
    assert (
        eager
        == "<p class='quiet'>Too few shapes for a tree: measured shapes, and sizes between them, have answers.</p>"
    )


def test_predicted_times_are_called_modelled_in_title_and_rows(tmp_path: Path) -> None:
    only = [row for row in rows("model") if isinstance(row.outcome, Measurement)]
    html = write(page("model", trials=only), tmp_path)[0].read_text()
    text = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    assert "modelled 2026-11-20</title>" in text and text.count("<td>modelled</td>") == 3
    assert "measured" not in text


def test_the_same_rows_give_the_same_page(tmp_path: Path) -> None:
    first, second = (write(page(), tmp_path / name)[0].read_text() for name in ("a", "b"))
    assert first == second


def test_what_others_wrote_is_escaped(tmp_path: Path) -> None:
    html = write(page(learned={"graph": "<script>alert(1)</script>"}), tmp_path)[0].read_text()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_rows_without_a_time_make_no_page(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match="none of the 1 rows of all_gather_gemm on h200x8 has a time; run `tftune search",
    ):
        write(page(trials=[failed(PUSH)]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_colours_are_one_for_each_variant() -> None:
    from tftune.report import figures

    assert figures.colour("unheard") == figures.colour("unheard") in figures.SPARE_COLOURS
    for name in OPS:
        variants = operation(name).space.variants
        assert len({figures.colour(variant) for variant in variants}) == len(variants)


def test_one_problem_on_more_ranks_is_strong_scaling(tmp_path: Path) -> None:
    from tftune.report import figures

    shapes = [FlashDecode(1, 64, 8, 128, 65_536 // world, world) for world in (1, 2, 4, 8)] + [
        FlashDecode(4, 64, 8, 128, 1024, 8)
    ]
    found = [trial(BSP, 160 / shape.world + 20, shape=shape) for shape in shapes]
    found += [
        trial(
            Config("persistent"), 160 / shape.world + 5, bsp_us=160 / shape.world + 20, shape=shape
        )
        for shape in shapes
    ]
    with figures.style():
        drawn = figures.scaling_figure(tables.lines(found))
    assert drawn is not None and len(drawn.axes) == 1
    (panel,) = drawn.axes
    assert "kv_len=65536" in panel.get_title(loc="left") and panel.get_xlabel() == "world"
    times = next(line for line in panel.lines if line.get_color() == figures.colour("persistent"))
    assert list(times.get_xdata()) == [1, 2, 4, 8] and list(times.get_ydata()) == pytest.approx(
        [165, 85, 45, 25]
    )
    ideal = next(line for line in panel.lines if line.get_linestyle() == "--")
    assert list(ideal.get_ydata()) == pytest.approx([165, 82.5, 41.25, 20.625])
    assert figures.scaling_figure(tables.lines(rows())) is None
    flash = replace(page(trials=found), op="flash_decode")
    written = write(flash, tmp_path)
    assert [path.name for path in written if "scaling" in path.name] == [
        "flash_decode__h200x8__node__scaling.png"
    ]
    assert "<h2>Strong scaling</h2>" in written[0].read_text()


def test_the_size_is_each_operations_own() -> None:
    from tftune.report import figures

    shapes = [
        FlashDecode(batch, 64, 8, 128, kv_len, 8) for batch in (1, 4) for kv_len in (1024, 32_768)
    ]
    with figures.style():
        drawn = figures.time_figure(
            tables.lines([trial(BSP, 20.0, shape=shape) for shape in shapes])
        )
    assert [panel.get_xlabel() for panel in drawn.axes] == ["kv_len"] * 2
    assert [panel.get_title(loc="left").split("  ")[1].strip() for panel in drawn.axes] == [
        "batch=1",
        "batch=4",
    ]
    assert [tick.get_text() for tick in drawn.axes[0].get_xticklabels()] == ["1024", "32K"]


def test_the_figures_draw_what_the_lines_say() -> None:
    from tftune.report import figures

    found = tables.lines(rows())
    with figures.style():
        times, ratios = figures.time_figure(found).axes[0], figures.speedup_figure(found).axes[0]
        bars = figures.failure_figure(rows())
    push = next(drawn for drawn in times.lines if drawn.get_color() == figures.colour("push"))
    assert list(push.get_xdata()) == [64, 128, 256] and list(push.get_ydata()) == pytest.approx(
        [25, 50, 80]
    )
    assert (times.get_xscale(), times.get_yscale(), ratios.get_yscale()) == ("log", "log", "log")
    speedups = next(drawn for drawn in ratios.lines if drawn.get_color() == figures.colour("push"))
    assert list(speedups.get_ydata()) == pytest.approx([2.0, 1.0, 0.625])
    assert bars is not None and [tick.get_text() for tick in bars.axes[0].get_yticklabels()] == [
        "hang"
    ]
    assert (
        figures.failure_figure([row for row in rows() if isinstance(row.outcome, Measurement)])
        is None
    )


def test_the_tree_figure_names_every_leaf_and_condition() -> None:
    from tftune.report import figures

    texts = [text.get_text() for text in figures.tree_figure(model(tree())).axes[0].texts]
    assert {
        "m \u2264 96",
        "m > 96",
        "gflop \u2264 7.5",
        "gflop > 7.5",
        "push",
        "pull",
        "BSP",
    } <= set(texts)
    assert texts.count("2 shapes") == 2 and texts.count("2 shapes; or push, BSP") == 1


def test_a_leaf_counts_its_other_configs_by_variant() -> None:
    from tftune.report import figures

    made = replace(
        model(None),
        configs=(BSP, PULL, PUSH, Config("push", block_m=128)),
        root=Leaf((1, 2, 3, 0), 1, 0.02, ()),
    )
    texts = [text.get_text() for text in figures.tree_figure(made).axes[0].texts]
    assert texts[:2] == ["pull", "1 shape; or 2 x push, BSP"]


def test_a_layout_without_a_tree_has_no_figure_of_it() -> None:
    from tftune.report import figures

    with pytest.raises(ValueError, match="dtype=bf16,shard=m,b_layout=nk,world=2 has no tree"):
        figures.tree_figure(model(None))


def test_of_a_large_tree_the_figure_shows_the_first_levels_and_counts_the_rest() -> None:
    from tftune.report import figures

    leaf = Leaf((2, 0), 1, 0.02, ())

    def node(levels: int) -> Node:
        return Split("m", float(levels), node(levels - 1), node(levels - 1)) if levels else leaf

    texts = [text.get_text() for text in figures.tree_figure(model(node(7))).axes[0].texts]
    assert sum(text == "4 leaves: 4 push" for text in texts) == figures.MOST_LEAVES == 32
    assert sum(text.startswith("m ") for text in texts) == 62


def test_configs_a_second_count_each_config_of_a_shape_once() -> None:
    again = [replace(each, mode="eager") for each in rows()]
    final = [replace(each, stage="final") for each in rows()]
    said = tables.throughput([*rows(), *again, *final], compile_s=3.0, whole_s=6.0)
    assert (
        said == "9 configs checked and timed: 1.50 a second, 3.00 without waiting for the compiler"
    )


def test_the_page_shows_what_a_run_doubts(tmp_path: Path) -> None:
    fell = replace(RUN, clocks={"3": {"sm_mhz": 1980.0}}, ended={"3": {"sm_mhz": 990.0}})
    html = write(replace(page(), runs=[RUN, fell]), tmp_path)[0].read_text()
    assert (
        html.count("Run r1: ") == 1
        and "Run r1: the SM clock of GPU 3 fell by 50 %, from 1980 to 990 MHz" in html
    )
