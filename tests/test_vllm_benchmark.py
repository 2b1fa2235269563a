"""benchmarks/vllm_llama.py without vLLM and without a GPU: its model, and what it reports."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest
import torch
import vllm_llama
from torch.autograd import DeviceType

from tftune.pipeline.model_config import config_of
from tftune.pipeline.model_shapes import ALL_REDUCE, model_shapes

CASES = (
    "decode 1", "decode 16", "decode 64", "decode 256",
    "prompt 4096", "new prompt 1024", "new prompts in a row 1024",
)  # fmt: skip


def test_the_engine_s_configuration_has_the_shapes_of_the_model() -> None:
    fields = vllm_llama.config_of(vllm_llama.MODELS["qwen2.5-7b"], layers=28)
    shapes = model_shapes(config_of(fields, "here"), 2, ALL_REDUCE, (16,), ()).shapes
    widths = {(shape.op, shape.to_dict()["n"]) for shape in shapes}
    assert {("gemm_all_reduce", 3584), ("all_reduce", 3584)} <= widths


def test_the_page_shows_what_was_measured() -> None:
    """Ratios of the medians of both engines, of all files in db/tuned, and the medians of one."""
    root = Path(__file__).parent.parent
    page, paths = (root / "docs/engines.md").read_text(), [*root.glob("db/tuned/vllm-*.json")]
    assert len(paths) == 16
    for path in paths:
        cases = json.loads(path.read_text())["cases"]
        plain, ours = ({name: 1e3 * median(one[side]) for name, one in cases.items()}
                       for side in ("plain_s", "ours_s"))  # fmt: skip
        ratios = [f"{plain[name] / ours[name]:.3f}" if name in cases else "" for name in CASES]
        machine, session = path.stem.removeprefix("vllm-0.23.0-llama3.1-8b-").split("-", 1)
        row = " | ".join(["", machine, session, *ratios, ""]).strip()
        assert row.replace("|  |", "| |").replace("|  |", "| |") in page
        for name in cases if path.stem.endswith("2026-11-29-third") else ():
            one = f"{name.split()[-1]} | {plain[name]:.3f} | {ours[name]:.3f} | "
            assert f"{one}{plain[name] / ours[name]:.3f} |" in page


def ended() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        return child.pid


def test_an_engine_that_waits_is_stopped() -> None:
    before = vllm_llama.processes()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = vllm_llama.processes() - before
        assert started == {child.pid}
        with vllm_llama.stopped([ended(), *started]):
            assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
        assert os.WIFCONTINUED(os.waitpid(child.pid, os.WCONTINUED)[1])
        child.kill()


def test_a_new_prompt_has_a_length_that_none_had_before() -> None:
    tokens = list(range(4094))
    calls = [vllm_llama.calls_of(f"{words} 1024", turn, tokens)
             for words in (vllm_llama.NEW, vllm_llama.IN_A_ROW) for turn in range(10)]  # fmt: skip
    lengths = [len(prompt) for every in calls for prompts in every for prompt in prompts]
    assert len(lengths) == len({4094, vllm_llama.PROBE, *lengths}) - 2 == 60
    assert min(lengths) == 974
    for words, least, length in ((vllm_llama.NEW, 1016, 1223), (vllm_llama.IN_A_ROW, 46, 0)):
        with pytest.raises(ValueError, match=f"of {length} tokens is none of 1 to 1200; give"):
            vllm_llama.calls_of(f"{words} {least}", 9, tokens[:1200])
    assert vllm_llama.calls_of("prompt 4096", 3, tokens) == [[tokens]]
    (batch,) = vllm_llama.calls_of("decode 64", 3, tokens)
    assert [len(prompt) for prompt in batch] == [vllm_llama.SHORT] * 64


def test_turns_become_medians_and_prompts_are_no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(__version__="0.23.0"))
    cases = {
        "decode 16": {"plain_s": [4e-3, 4e-3, 9e-3], "ours_s": [2e-3, 8e-3, 2e-3]},
        "decode 64": {"plain_s": [4e-3], "ours_s": [8e-3]},
        "prompt 4096": {"plain_s": [0.3], "ours_s": [0.2]},
        "new prompt 1024": {"plain_s": [0.1], "ours_s": [0.25]},
    }
    found = {"cases": cases, "starts": [30.0, 45.0], "itself": 0.0, "apart": 0.01}
    *table, line = vllm_llama.report(found, argparse.Namespace(model="x"), "h100x2").splitlines()
    assert "4000       8000 tokens/s" in table[1]
    assert line == (
        "RESULT vllm version=0.23.0 target=h100x2 model=x decode=1.000 prompt=1.500 worst=0.400 "
        "start_s=45.0 plain_start_s=30.0"
    )


def test_a_profile_shows_first_what_differs_most() -> None:
    plain = {"gemm": (4.0, 12.5), "all_reduce": (2.0, 4.5)}
    ours = {"gemm": (4.0, 12.75), "push": (2.0, 2.0)}
    *shown, last = vllm_llama.kernels_beside(plain, ours)[1:]
    assert [line.split() for line in shown] == [
        ["2.0", "4.5", "0.0", "0.0", "all_reduce"], ["0.0", "0.0", "2.0", "2.0", "push"],
        ["4.0", "12.5", "4.0", "12.8", "gemm"],
    ]  # fmt: skip
    assert last.split() == ["sum", "59.0", "55.0"]


def test_kernels_of_a_step_leave_the_prompt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of the first token are taken off, and the rest is shared by the other steps. One of
    two ranks waits in its collective."""
    asked: list[int] = []

    def worker(call: object) -> list[object]:
        steps = asked[-1] - 1 if asked else 0
        ranks = [{"prompt": [7.0], "gemm": [9.0] + [2.0, 2.0] * steps, "sum": [us] * steps}
                 for us in (30.0, 4.0)]  # fmt: skip
        return [None if call is vllm_llama.begin_profile else one for one in ranks]

    monkeypatch.setattr(vllm_llama, "seconds", lambda llm, prompts, tokens: asked.append(tokens))
    engine = SimpleNamespace(collective_rpc=worker)
    assert vllm_llama.profiled(engine, [[1]], 16) == {"gemm": (2.0, 2.0), "sum": (1.0, 4.0)}
    assert vllm_llama.profiled(engine, [[1]], 0)["prompt"] == (1.0, 7.0)


def test_an_operators_time_is_without_that_of_those_it_calls() -> None:
    def event(name: str, device: DeviceType, us: float) -> SimpleNamespace:
        span = SimpleNamespace(elapsed_us=lambda: 9.0)
        return SimpleNamespace(name=name, device_type=device, self_cpu_time_total=us,
                               time_range=span)  # fmt: skip

    events = [event("mm", DeviceType.CPU, 2.0), event("gemm", DeviceType.CUDA, 0.0)]
    made = SimpleNamespace(stop=lambda: None, events=lambda: events)
    assert vllm_llama.end_profile(SimpleNamespace(tftune_profile=made), "CPU") == {"mm": [2.0]}


def test_operators_of_a_prompt_are_those_of_the_first_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """By torch's own profiler."""
    rank = SimpleNamespace()

    def prompt(llm: object, prompts: list[list[int]]) -> None:
        torch.add(torch.ones(len(prompts[0])), 1)
        torch.add(torch.ones(3), 1)

    monkeypatch.setattr(vllm_llama, "first_token_seconds", prompt)
    engine = SimpleNamespace(collective_rpc=lambda call, args: [call(rank, *args), {}])
    found = vllm_llama.operators(engine, [1, 2])
    assert found["aten::add"][0] == found["aten::ones"][0] == 2
    assert all(us >= 0 for _, us in found.values()) and found["aten::add"][1] > 0


def test_a_step_of_decoding_is_between_two_in_which_every_sequence_got_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Prompts are computed in two steps of 3 s and 1 s, and the sequence that began first ends
    first."""
    clock, steps = [0.0], [(3.0, 1), (1.0, 2), *[(0.5, 2)] * 10, (0.25, 1)]
    added: list[str] = []

    def step() -> list[None]:
        took, tokens = steps.pop(0)
        clock[0] += took
        return [None] * tokens

    monkeypatch.setattr(vllm_llama.time, "perf_counter", lambda: clock[0])
    params = SimpleNamespace(RequestOutputKind=SimpleNamespace(DELTA=1))
    vllm = SimpleNamespace(SamplingParams=lambda **named: named["max_tokens"])
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", params)
    engine = SimpleNamespace(
        step=step, has_unfinished_requests=lambda: bool(steps),
        add_request=lambda name, prompt, tokens: added.append(f"{name} {tokens}"),
    )  # fmt: skip
    llm = SimpleNamespace(llm_engine=engine)
    assert vllm_llama.step_seconds(llm, [[1], [2]]) == 0.5 and added == ["0 65", "1 65"]
