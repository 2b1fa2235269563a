"""The report: which trial stands for a variant, what counts as a win, and a page that holds its
figures and says what was modelled."""

from __future__ import annotations

import re
import resource
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import synthetic

from tftune.db.evidence import measurement
from tftune.db.lock import StoreError
from tftune.db.trial import Failure, Measurement, Run, Trial
from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.space import Config
from tftune.models.artifact import Mode
from tftune.models.layout import LayoutModel
from tftune.models.tree.tree import Leaf, Node, Split
from tftune.report import tables
from tftune.report.report import Page, write
from tftune.report.tree_list import tree_list

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
    outcome = Measurement(samples, tuple(bsp_us for _ in samples) if bsp_us else (), None)
    shape = AllGatherGemm(m, 3584, 8192, 8)
    return replace(
        Trial(shape, config, mode, "h200x8", bench, "r1", "k1", outcome),
        **changes,  # type: ignore[arg-type]
    )


def failed(config: Config, kind: str = "hang") -> Trial:
    return replace(trial(config, 1.0), outcome=Failure(kind, "passed 20 s"))


def rows(bench: str = "node") -> list[Trial]:
    """BSP, pull and push at three sizes: push wins at M=64, ties at M=128 and loses at M=256; one
    failure."""
    made = [failed(Config("pull", block_m=256))]
    for m, push_us in ((64, 25.0), (128, 50.0), (256, 80.0)):
        common = dict(m=m, bench=bench)
        made.append(trial(BSP, 50.0, **common))
        made.append(trial(PULL, 100.0, bsp_us=50.0, **common))
        made.append(trial(PUSH, push_us, bsp_us=50.0, **common))
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
    assert small.ratio is not None and small.ratio[0] == pytest.approx(2.0)
    assert 1.98 < small.ratio[1] < 2 < small.ratio[2] < 2.02
    assert middle.winner.config == BSP or middle.ties_with_bsp
    assert (large.winner.config, large.ratio, large.fused_wins) == (BSP, (1.0, 1.0, 1.0), False)


def test_an_interval_that_holds_one_is_a_tie_and_no_win() -> None:
    (line,) = tables.lines([trial(BSP, 50.0), trial(PUSH, 49.95, bsp_us=50.0)])
    assert line.winner.config == PUSH and line.ties_with_bsp and not line.fused_wins
    assert tables.headline([line]) == [
        "graph: a fused variant beats BSP on 0 of 1 shapes; 1 tie (measured)."
    ]
    assert "push (ties with BSP)" in tables.cells(line, ["bsp", "push"])


@pytest.mark.parametrize(
    ("faster", "counts"),
    [
        ({}, {"stage": "final"}),
        ({"revision": "k0", "created": "2026-11-19", "stage": "final"}, {"created": "2026-11-20"}),
    ],
    ids=["search row beside a final one", "final row of an older kernel"],
)
def test_a_faster_row_does_not_count(faster: dict[str, str], counts: dict[str, str]) -> None:
    found = [trial(BSP, 50.0), trial(PUSH, 40.0, bsp_us=50.0, **counts)]
    (line,) = tables.lines([*found, trial(PUSH, 20.0, bsp_us=50.0, **faster)])
    assert line.median_us("push") == 40.0


def test_without_bsp_there_is_no_ratio() -> None:
    (line,) = tables.lines([trial(PULL, 30.0), trial(PUSH, 20.0)])
    assert line.winner.config == PUSH and line.ratio is None
    assert tables.cells(line, ["bsp", "pull", "push"])[3:8] == ["-", "30.0", "20.0", "push", "-"]


def test_a_failure_has_no_times() -> None:
    with pytest.raises(ValueError, match="passed 20 s"):
        measurement(failed(PUSH))
    assert tables.lines([failed(PUSH)]) == []


def body(html: str) -> str:
    """The page without its style sheet."""
    return re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)


def test_the_page_holds_its_figures_and_its_provenance(tmp_path: Path) -> None:
    paths = write(
        page(learned={"graph": mode(model(tree())), "eager": "no rows of mode eager"}),
        tmp_path / "deep/report",
    )
    html = paths[0].read_text()
    assert [path.name for path in paths] == [
        "all_gather_gemm__h200x8__node.html",
        "all_gather_gemm__h200x8__node__speedup_graph.png",
    ]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    assert len(re.findall(r"<svg [^>]*role='img' aria-label='[^']{40,}'", html)) == 3
    assert "<title>all_gather_gemm on h200x8, measured 2026-11-20</title>" in html
    for text in (
        "torch 2.11.0", "no rows of mode eager", "1 of 10 trials failed",
        "<code>push(block_m=64)</code>", "N\u00a0=\u00a03584, K\u00a0=\u00a08192 (paper)",
    ):  # fmt: skip
        assert text in html
    assert "http" not in html and "modelled" not in body(html)


def test_the_headline_comes_first_and_counts_what_wins(tmp_path: Path) -> None:
    html = write(page(), tmp_path)[0].read_text()
    (card,) = re.findall(r"<div class='card'>(.*?)</div>", html)
    assert f"<p class='number'>{2 ** (1 / 3):.2f}\u00d7</p>" in card, "BSP answers twice: 1 each"
    assert "The fastest configs: " in card and "measured. BSP itself runs where" in card
    assert "A fused variant wins on 1 of 3 shapes, by at most 2.00\u00d7 (M" in card
    titles = re.findall(r"<h2 id='[^']*'>([^<]*)</h2>", html)
    assert html.index(card) < html.index("<section>")
    assert titles[:2] == ["Speed-up by size", "Results"]


def test_intervals_are_named_only_where_there_are_some(tmp_path: Path) -> None:
    with_some, without = (
        body(write(page(bench, trials=timed(bench)), tmp_path)[0].read_text())
        for bench in ("node", "model")
    )
    assert with_some.count("95 % interval") == 3 and "1.99\u20132.01" in with_some
    assert "interval" not in without and "\u2013" not in without


def timed(bench: str) -> list[Trial]:
    return [row for row in rows(bench) if isinstance(row.outcome, Measurement)]


def test_the_tree_is_a_list_that_names_every_condition_leaf_and_shape(tmp_path: Path) -> None:
    html = write(page(learned={"graph": mode(model(tree()))}), tmp_path)[0].read_text()
    (listed,) = re.findall(r"<ul class='tree'>.*</ul>", html, flags=re.DOTALL)
    conditions = re.findall(r"<span class='if'>(.*?)</span>", listed)
    assert conditions == ["m \u2264 96", "m &gt; 96", "gflop \u2264 7.5", "gflop &gt; 7.5"]
    configs = re.findall(r"<code>(.*?)</code>", listed)
    assert configs == ["push(block_m=64)", "pull(block_m=64)", "bsp()"]
    assert listed.count("(2 shapes)") == 2 and listed.count("(2 shapes; or push, BSP)") == 1
    assert "<dt>gflop</dt><dd>billions of operations on one rank.</dd>" in html


def test_a_leaf_counts_its_other_configs_by_variant() -> None:
    configs = (BSP, PULL, PUSH, Config("push", block_m=128))
    made = replace(model(None), configs=configs, root=Leaf((1, 2, 3, 0), 1, 0.02, ()))
    assert "any shape: <code>pull(block_m=64)</code>" in tree_list(made)
    assert "(1 shape; or 2 of push, BSP)" in tree_list(made)


def test_a_layout_without_a_tree_has_no_list_of_it() -> None:
    with pytest.raises(ValueError, match="dtype=bf16,shard=m,b_layout=nk,world=2 has no tree"):
        tree_list(model(None))


def test_each_layout_that_has_a_tree_shows_it_in_the_order_of_the_mode(tmp_path: Path) -> None:
    """A layout without one is left out; a mode without any says so."""
    layouts = [(dtype, "m", "nk", 2) for dtype in ("bf16", "fp16")]
    made = [model(tree(), layout=layout) for layout in layouts]
    bare = model(None, layout=("fp16", "k", "nk", 2))
    learned = {"graph": mode(made[0], bare, made[1]), "eager": mode(bare)}
    html = write(page(learned=learned), tmp_path)[0].read_text()
    selector = html.partition("<h2 id='selector'>")[2].partition("</section>")[0]
    space = "\u00a0"
    assert [title.replace(space, " ") for title in re.findall(r"<summary>([^<]*) <", selector)] == [
        f"{dtype}, shard = m, b_layout = nk, 2 ranks" for dtype in ("bf16", "fp16")
    ]
    assert selector.count("3 leaves, learned from measured times") == 2
    assert selector.partition("<h3>Mode eager</h3>\n")[2].startswith(
        "<p class='quiet'>Too few shapes for a tree: measured shapes, and sizes between them, have "
        "answers.</p>"
    )


def test_predicted_times_are_called_modelled_wherever_they_stand(tmp_path: Path) -> None:
    learned = {"graph": mode(model(tree())), "eager": mode(model(None))}
    written = write(page("model", learned, timed("model")), tmp_path)
    text = body(written[0].read_text())
    assert "modelled 2026-11-20</title>" in text and "measured" not in text
    assert "may overstate a speed-up by up to 1.44\u00d7" in text
    assert "<th scope='colgroup' colspan='3'>time, \u00b5s (modelled)</th>" in text
    for name in ("speed-up", "results", "variants", "times", "selector", "glossary"):
        assert "modelled" in text.partition(f"<h2 id='{name}'>")[2].partition("</section>")[0], name
    figures = re.findall(r"<svg .*?</svg>", text, flags=re.DOTALL)
    assert len(figures) == 3 and all("modelled" in figure for figure in figures)
    assert text.count("what is selected at these shapes, modelled after the discount") == 1


def test_the_same_rows_give_the_same_page(tmp_path: Path) -> None:
    first, second = (write(page(), tmp_path / name)[0].read_text() for name in ("a", "b"))
    assert first == second


def test_a_file_system_that_fills_up_leaves_no_half_of_a_page_or_picture(tmp_path: Path) -> None:
    """A real refusal in the middle of a file, of a kernel that lets a process write no more."""
    paths = write(page(), tmp_path)
    html, png = (path.read_bytes() for path in paths)
    assert len(html) < 40_000 < len(png)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, limits[1]))
    try:
        with pytest.raises(StoreError, match="File too large; name another folder with --out"):
            write(page(trials=rows()[:4]), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert set(tmp_path.iterdir()) == set(paths) and paths[1].read_bytes() == png
    assert html != paths[0].read_bytes() and paths[0].read_bytes().endswith(b"</html>\n")


def test_what_others_wrote_is_escaped(tmp_path: Path) -> None:
    html = write(page(learned={"graph": "<script>alert(1)</script>"}), tmp_path)[0].read_text()
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_rows_without_a_time_make_no_page(tmp_path: Path) -> None:
    said = "none of the 1 rows of all_gather_gemm on h200x8 has a time; run `tftune search"
    with pytest.raises(ValueError, match=said):
        write(page(trials=[failed(PUSH)]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_configs_a_second_count_each_config_of_a_shape_once() -> None:
    again = [replace(each, mode="eager") for each in rows()]
    final = [replace(each, stage="final") for each in rows()]
    said = tables.throughput([*rows(), *again, *final], compile_s=3.0, whole_s=6.0)
    rates = "1.50 a second, 3.00 without waiting for the compiler"
    assert said == f"9 configs checked and timed: {rates}"


def test_the_page_shows_what_a_run_doubts(tmp_path: Path) -> None:
    fell = replace(RUN, clocks={"3": {"sm_mhz": 1980.0}}, ended={"3": {"sm_mhz": 990.0}})
    html = write(replace(page(), runs=[RUN, fell]), tmp_path)[0].read_text()
    assert html.count("Run r1: ") == 1
    assert "Run r1: the SM clock of GPU 3 fell by 50 %, from 1980 to 990 MHz" in html
