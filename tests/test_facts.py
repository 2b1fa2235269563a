"""Forms of a config, the trees K and G, and what a selection becomes by a rank's facts."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Tftune, run
from draws import draw

import tftune
from tftune.db.store import Store
from tftune.kernels.core.chips import H200
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import Facts, Lengths
from tftune.kernels.flash_decode.space import LOCAL_KNOBS, SPACE
from tftune.models import facts_fit
from tftune.models.artifact import SHIPPED, Mode, parse_artifact, read_artifact
from tftune.models.export import Provenance, document
from tftune.models.facts import FactsModel, answer, read, rules, values
from tftune.models.facts_fit import Case, cover, judged, totals, train
from tftune.models.forms import Form, forms_of
from tftune.models.selector import Selector
from tftune.models.timeline.simulator import predict
from tftune.models.tree.tree import Leaf, depth_of, leaves_of
from tftune.pipeline.facts_job import cases as cases_of_rows

ROOT = Path(__file__).resolve().parent.parent
OP = "flash_decode"
LENGTHS = [f"{name}/{seed}" for name in ("uniform", "zipf", "one_long", "chat") for seed in (1, 2)]
SHAPES = [
    FlashDecode(batch, 64, 8, 128, kv_len, 8, "bf16", "heads", 16)
    for batch in (1, 4, 16, 64)
    for kv_len in (1024, 4096, 16384)
]
IDENTITY = Form(OP, (0, 0))


def base(shape: FlashDecode) -> tftune.Config:
    return next(each for each in SPACE.defaults(shape, H200) if each.variant == "persistent")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Modelled."""

    def case(shape: FlashDecode, text: str) -> Case | None:
        def time_us(config: tftune.Config) -> float:
            return predict(shape, config, "graph", H200, text)

        return facts_fit.case(shape, text, base(shape), H200, time_us)

    found = [case(shape, text) for shape in SHAPES for text in LENGTHS]
    assert None not in found
    return [each for each in found if each]


@pytest.fixture(scope="module")
def model(cases: list[Case]) -> FactsModel:
    found = train(cases)
    assert found
    return found


# Forms.


def test_a_form_moves_local_knobs_only_and_is_always_allowed() -> None:
    source = random.Random(0)
    for shape in SHAPES:
        configs = [c for v in SPACE.variants for c in draw(SPACE, shape, H200, v, 100)]
        for config in source.sample(configs, 20):
            for form in forms_of(OP):
                found = form.applied(shape, config, H200)
                assert SPACE.why_invalid(shape, found, H200) is None
                changed = {name for name, value in found.knobs if value != config[name]}
                assert found.variant == config.variant and changed <= LOCAL_KNOBS.keys()
                for name, steps in zip(LOCAL_KNOBS, form.doublings, strict=True):
                    assert (found[name] - config[name]) * steps >= 0  # never the other way


def test_a_form_doubles_what_it_says() -> None:
    shape = SHAPES[4]
    config = tftune.Config("persistent", **dict(base(shape).knobs) | {"block_n": 64})
    assert IDENTITY.applied(shape, config, H200) is config and str(IDENTITY) == "as it is"
    double = Form(OP, (1, 1)).applied(shape, config, H200)
    assert double["kv_splits"] == 2 * config["kv_splits"]
    assert double["block_n"] == 2 * config["block_n"]
    assert str(Form(OP, (2, -1))) == "kv_splits x4, block_n x1/2"


def test_an_operation_without_local_knobs_has_no_forms() -> None:
    with pytest.raises(ValueError, match="all_reduce has no knobs that ranks may set apart"):
        forms_of("all_reduce")


# Trees.


def test_trees_are_shallow_and_name_what_there_is(model: FactsModel) -> None:
    assert 1 < len(model.forms) <= 4 and model.forms[0] == IDENTITY
    for at in (model.known, model.gathered):
        assert depth_of(at) <= 4
        assert all(0 <= leaf.candidates[0] < len(model.forms) for leaf in leaves_of(at))
    assert sum(leaf.rows for leaf in leaves_of(model.known)) == model.cases


def test_trees_lose_less_than_the_config_as_it_is(model: FactsModel, cases: list[Case]) -> None:
    us = totals([(model, cases)])
    assert us.cases == len(cases)
    assert us.best <= us.told <= us.known < us.as_it_is


def test_the_cover_takes_what_saves_most() -> None:
    """Three forms, each best at one case: the two with most at stake, and never more than 4."""
    every = forms_of(OP)
    times = [{form: 100.0 for form in every} for _ in range(6)]
    saved = (50, 40, 30, 20, 0.1, 0.1)
    for time_us, form, us in zip(times, every[1:], saved, strict=False):
        time_us[form] = 100.0 - us
    made = [Case(SHAPES[0], "uniform/1", base(SHAPES[0]), H200, each) for each in times]
    assert cover(made) == (IDENTITY, *every[1:4])
    assert cover(made[4:]) == (IDENTITY,)


def test_a_tree_that_loses_held_out_does_not_answer(
    cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it gains on what it saw."""

    def held_out(**us: float) -> object:
        one = {"as_it_is": 100.0, "best": 70.0, "cases": 1} | us
        return lambda _: {"chat": one, "zipf": one}

    for us, kept in (
        ({"known": 90.0, "told": 80.0}, (True, True)),
        ({"known": 101.0, "told": 80.0}, (False, True)),
        ({"known": 90.0, "told": 91.0}, (True, False)),
    ):
        monkeypatch.setattr(facts_fit, "judged", held_out(**us))
        found, fitted = train(cases), facts_fit.fitted(cases)
        assert found
        known = fitted.known if kept[0] else Leaf((0,), len(cases), 0.0, ())
        assert found.known == known
        assert found.gathered == (fitted.gathered if kept[1] else known)
        assert not isinstance(fitted.known, Leaf) and not isinstance(fitted.gathered, Leaf)


def test_what_is_held_out_was_not_seen(cases: list[Case], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the distribution nor any shape of the cases that a fit is judged on."""
    seen: list[list[Case]] = []
    fitted = facts_fit.fitted

    def noted(given: list[Case]) -> FactsModel:
        seen.append(given)
        return fitted(given)

    monkeypatch.setattr(facts_fit, "fitted", noted)
    found = judged(cases)
    assert list(found) == ["chat", "one_long", "uniform", "zipf"] and len(seen) == 8
    for number, name in enumerate(found):
        for half in seen[2 * number : 2 * number + 2]:
            assert name not in {each.distribution for each in half}
            assert len({each.shape for each in half}) == len(SHAPES) / 2
    one, other = ({each.shape for each in half} for half in seen[:2])
    assert one.isdisjoint(other)


def test_no_form_is_faster_than_the_best(cases: list[Case]) -> None:
    found = judged(cases)
    assert sum(each["cases"] for each in found.values()) == len(cases)
    for each in found.values():
        assert each["best"] <= min(each["known"], each["told"], each["as_it_is"])


def test_one_distribution_makes_no_trees(cases: list[Case]) -> None:
    assert train([each for each in cases if each.distribution == "chat"]) is None


def test_features_are_those_of_the_facts() -> None:
    shape = SHAPES[4]
    found = values(shape, base(shape), H200, Facts(8192, 4096, 1))
    assert found["fill"] == 8192 / (4 * 4096) and found["evenness"] == 8192 / (3 * 4096)
    tokens = base(shape)["kv_splits"] * base(shape)["block_n"]
    assert found["blocks"] == 4096 / tokens
    with pytest.raises(ValueError, match="longest=5000 is above kv_len=4096"):
        values(shape, base(shape), H200, Facts(5000, 5000))


# In an artifact and a selector.


def test_a_model_reads_back_and_answers_alike(model: FactsModel, cases: list[Case]) -> None:
    again = read(OP, json.loads(json.dumps(model.to_dict())))
    assert again.to_dict() == model.to_dict()
    for each in cases:
        facts, place = each.facts, (each.shape, each.config, each.chip)
        assert again.form(*place, facts) == model.form(*place, facts)
        told = answer(model.gathered, values(*place, facts))
        assert model.forms[told] == model.form(*place, facts)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"forms": [[0, 0], [7, 0]]}, "names the form"),
        ({"forms": [[1, 0]]}, "the first is the config as it is"),
        (
            {"known": ["fill", 0.5, [[0], 1, 0.0, []], [[0], 1, 0.0, []]]},
            "tree known asks for 'fill'",
        ),
        ({"gathered": [[9], 1, 0.0, []]}, "a leaf of its tree gathered names"),
        ({"layouts": [["fp64", "all", 0, 8]]}, "its layout has dtype='fp64'"),
    ],
)
def test_a_model_that_is_none_is_refused(
    model: FactsModel, change: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        read(OP, model.to_dict() | change)


FEW = ";".join(map(str, SHAPES[::2]))
FACTS = (
    f"facts {OP} --on model --target h200x8 --shapes {FEW} --lengths uniform/1,one_long/1,chat/1"
)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A database with a short search on the model and with forms under lengths, and the artifact
    of both, by the command line as a user would."""
    folder = tmp_path_factory.mktemp("facts")
    db, out = folder / "t.db", folder / "a.json"
    on = f"--target h200x8 --db {db}"
    for line in (
        f"search {OP} --on model --mode graph --effort scout --shapes {FEW} {on}",
        f"export {OP} {on} --out {out}",
        f"{FACTS} --artifact {out} --db {db}",
        f"export {OP} {on} --out {out}",
    ):
        assert run(line) == 0, line
    return db, out


def test_the_trees_come_with_the_artifact(searched: tuple[Path, Path]) -> None:
    db, out = searched
    found = read_artifact(out)
    told = found.modes["graph"].facts
    assert told and told.lengths == ("chat/1", "one_long/1", "uniform/1")
    assert told.cases == 3 * len(SHAPES[::2])
    with Store.open(db, write=False) as store:
        rows = store.trials(condition=None)
        assert {row.stage for row in rows if row.condition} == {"matrix"}
        plain = replace(found, modes={"graph": replace(found.modes["graph"], facts=None)})
        ragged = [row for row in rows if row.condition]
        assert len(cases_of_rows(Selector(plain, allow_modelled=True), plain, ragged)) == told.cases


def test_the_same_command_measures_nothing_again(
    searched: tuple[Path, Path], tftune: Tftune
) -> None:
    db, out = searched
    with Store.open(db, write=False) as store:
        before = store.trials(condition=None)
    said = tftune(f"{FACTS} --artifact {out} --db {db}").out
    assert "K, without facts:" in said and "G, with facts:" in said and "held out" in said
    with Store.open(db, write=False) as store:
        assert store.trials(condition=None) == before


def test_a_selection_follows_the_facts(searched: tuple[Path, Path]) -> None:
    artifact = read_artifact(searched[1])
    selector = Selector(artifact, allow_modelled=True)
    told, chip = artifact.modes["graph"].facts, artifact.target.chip
    assert told
    changed = 0
    for shape in SHAPES[::2]:
        plain = selector.without_facts(shape)
        for text in LENGTHS:
            facts = Facts.of(Lengths.parse(text).local(shape, 0))
            found = selector.select(shape, facts=facts)
            form = told.form(shape, plain.config, chip, facts)
            assert found.config == form.applied(shape, plain.config, chip)
            assert found.config in selector.choices(shape) and len(selector.choices(shape)) <= 4
            assert selector.select(shape, facts=facts) is found
            if found.config != plain.config:
                changed += 1
                assert found.source == "modelled" and found.expected_us is None
                assert "by this rank's facts" in found.reason
            else:
                assert found == plain
        known = told.form(shape, plain.config, chip)
        assert selector.select(shape).config == known.applied(shape, plain.config, chip)
    assert changed


def test_without_trees_facts_change_nothing(searched: tuple[Path, Path]) -> None:
    artifact = read_artifact(searched[1])
    plain = replace(artifact, modes={"graph": replace(artifact.modes["graph"], facts=None)})
    shape, selector = SHAPES[0], Selector(plain, allow_modelled=True)
    assert selector.select(shape, facts=Facts(10, 10)) == selector.select(shape)
    assert selector.choices(shape) == (selector.select(shape).config,)
    closed = Selector(artifact)  # modelled, and not allowed
    assert closed.select(shape, facts=Facts(10, 10)).source == "fallback"
    assert len(closed.choices(shape)) == 1


def test_trees_of_one_layout_say_nothing_of_another() -> None:
    """The artifact of one H200 has ragged rows of bf16 in pages, and full ones of fp16."""
    selector = Selector(read_artifact(SHIPPED / f"{OP}__h200x1.json"), check_source=False)
    paged = FlashDecode(24, 64, 8, 128, 12016, 1, "bf16", "heads", 16)
    other = FlashDecode(24, 64, 8, 128, 9000, 1)
    long = Facts(total=9000 + 23, longest=9000)
    found = selector.without_facts(other)
    assert found.source == "measured" and selector.select(other) == found
    assert selector.select(other, facts=long) == found
    assert selector.choices(other) == (found.config,)
    assert selector.select(paged, facts=long).config != selector.without_facts(paged).config


def test_wrong_facts_are_refused(searched: tuple[Path, Path]) -> None:
    selector = Selector(read_artifact(searched[1]), allow_modelled=True)
    with pytest.raises(ValueError, match="longest=9999 is above kv_len=1024"):
        selector.select(SHAPES[0], facts=Facts(9999, 9999))
    with pytest.raises(TypeError, match=r"are no facts of flash_decode; give tftune\.Facts"):
        selector.select(SHAPES[0], facts=17)
    gemm = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)
    with pytest.raises(ValueError, match="all_gather_gemm has no lengths"):
        selector.select(gemm, facts=Facts(1, 1))
    with pytest.raises(ValueError, match="mode='slow'"):
        selector.select(SHAPES[0], "slow", Facts(1, 1))


def test_a_confirmed_answer_is_served_as_it_was_measured(searched: tuple[Path, Path]) -> None:
    selector = Selector(read_artifact(searched[1]), allow_modelled=True)
    mine = replace(selector.without_facts(SHAPES[0]), source="measured")
    selector.confirm(SHAPES[0], "graph", mine)
    assert selector.select(SHAPES[0]) is mine


def test_rules_read_well(model: FactsModel) -> None:
    said = rules(model)
    assert said[0] == "K, without facts:" and "G, with facts:" in said
    assert all(len(line) <= 100 for line in said)
    assert sum("cases)" in line for line in said) >= 2


def test_an_artifact_with_trees_is_checked_whole(model: FactsModel) -> None:
    mode = Mode({}, {}, model)
    origin = Provenance(OP, "h200x8", "model", {}, {}, 0, "0" * 16, created="2026-11-24T00:00:00")
    content = document({"graph": mode}, origin)
    assert parse_artifact(content).modes["graph"].facts == model
    content["modes"]["graph"]["facts"].pop("known")
    with pytest.raises(ValueError, match="lacks 'known'"):
        parse_artifact(content)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("all_reduce", "all_reduce has no knobs that ranks may set apart"),
        (f"{OP} --on replay", "--on replay has no rows of every form"),
        (f"{OP} --on model", "--on model needs --target"),
        (f"{OP} --on model --target h200x8 --lengths even", "not one of full"),
        (
            f"{OP} --on model --target h100x2 --shapes paper",
            "answers for none of these shapes; run `tftune search flash_decode`",
        ),
    ],
)
def test_wrong_words_end_with_a_sentence(line: str, said: str, tftune: Tftune) -> None:
    done = tftune(f"facts {line} --db t.db")
    assert done.code == 2 and said in done.err


def test_the_page_shows_what_the_artifact_of_one_h200_says() -> None:
    facts = read_artifact(SHIPPED / f"{OP}__h200x1.json").modes["graph"].facts
    assert facts is not None
    page = (ROOT / "docs" / "facts.md").read_text()
    for name, us in facts.held_out.items():
        means = (us[each] / us["cases"] for each in ("as_it_is", "known", "told", "best"))
        cells = [name, *(f"{each:.2f}" for each in means), str(us["cases"])]
        assert f"| {' | '.join(cells)} |" in page
    assert "\n".join(rules(facts)) in page
