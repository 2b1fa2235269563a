"""What the plug-in gains in vLLM itself: tokens per second of a model with random weights.

usage: python benchmarks/vllm_llama.py [--model llama3.1-8b|qwen2.5-7b] [--layers 32]
           [--batches 1 16 64 256] [--prompt 4096] [--rounds 7] [--seconds 540]
           [--backend TRITON_ATTN] [--variable 1|first] [--few] [--profile 256 0]
           [--host 1100] [--plain-first] [--json FILE]

Two engines share the GPUs, one with the plug-in and one without it, and take turns; that with the
plug-in starts first unless --plain-first is given. Each is vLLM's own `LLM` with tensor parallelism
over all GPUs here, its own all-reduce, and CUDA graphs of the sizes that it captures by default, or
with --few of these batches. A decode step is one that decodes all sequences of a batch, a mean of
some 64; a prompt is the time to its first token, and a new one has a length that none had before,
near a quarter of --prompt. Those in a row follow a first one in the same engine, which is not
timed; any other prompt finds a host that has just run the other engine. The processes of the
engine that waits are stopped, since they would poll for work. Times are medians over rounds, with
all that vLLM does on the host. `apart` is the largest difference between the two engines in a
log-probability of a prompt's own tokens; `itself`, that between two runs of the engine without the
plug-in. --profile: the kernels of a step that decodes so many sequences, or with 0 of a prompt, in
both engines, by torch's profiler. --host: the operators of a prompt of so many tokens, a length
that no case has, then of the same again: host time alone.

RESULT vllm version=.. target=.. model=.. decode=.. prompt=.. worst=.. start_s=.. plain_start_s=..
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, geometric_mean, median
from typing import Any

import launch
from parallel_models import MODELS, Model

STEPS = 64
SHORT = 16
"""Tokens of a prompt that is decoded."""
APART = 23
"""Tokens by which one new prompt is longer than the last."""
PROBE = 900
"""Tokens of the prompt whose log-probabilities are compared."""
NEW, IN_A_ROW, ROW = "new prompt", "new prompts in a row", 5
"""Cases of prompts whose length none had before: one a turn, or so many, the first not timed."""
KERNELS = 20
"""How many kernels of a profile are shown."""
VARIABLE = "TFTUNE_VLLM"


def config_of(model: Model, layers: int) -> dict[str, Any]:
    """The model's config.json, as vLLM reads it."""
    return {
        "architectures": [f"{model.kind}ForCausalLM"], "model_type": model.kind.lower(),
        "hidden_size": model.hidden, "intermediate_size": model.inner,
        "num_attention_heads": model.heads, "num_key_value_heads": model.kv_heads,
        "num_hidden_layers": layers, "vocab_size": model.vocabulary, "rms_norm_eps": model.eps,
        "torch_dtype": "bfloat16", "max_position_embeddings": 8192, "hidden_act": "silu",
        "rope_theta": 500000.0, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip


def engine(options: argparse.Namespace, folder: Path, variable: str) -> tuple[Any, float]:
    """A vLLM over all GPUs, and the seconds of its start."""
    import torch
    from vllm import LLM

    os.environ[VARIABLE] = variable
    if find_spec("flashinfer") is None:  # vLLM's sampler imports it unless told not to
        os.environ.setdefault("VLLM_USE_FLASHINFER_SAMPLER", "0")
    os.environ["VLLM_CACHE_ROOT"] = str(folder / f"cache-{variable}")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / f"inductor-{variable}")
    compiled = {"cudagraph_capture_sizes": sorted(options.batches)} if options.few else {}
    began = time.monotonic()
    made = LLM(
        model=str(folder), load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16",
        tensor_parallel_size=torch.cuda.device_count(), seed=0, enable_prefix_caching=False,
        gpu_memory_utilization=0.42, max_model_len=options.prompt + 128,
        max_num_batched_tokens=options.prompt, max_num_seqs=max(options.batches),
        attention_backend=options.backend, disable_log_stats=True,
        compilation_config=compiled,
    )  # fmt: skip
    return made, time.monotonic() - began


def processes(pid: int | str = "self") -> set[int]:
    """The processes that one has started, and theirs."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    started = {int(child) for thread in threads for child in thread.read_text().split()}
    return started.union(*map(processes, started))


@contextmanager
def stopped(waiting: Collection[int]) -> Iterator[None]:
    """Processes that do not run meanwhile, but for those that have ended."""
    try:
        for pid in waiting:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in waiting:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def seconds(llm: Any, prompts: Sequence[Sequence[int]], tokens: int) -> float:
    """Time of one call that makes so many tokens behind each prompt."""
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=tokens, min_tokens=tokens, ignore_eos=True, temperature=0.0,
                           detokenize=False)  # fmt: skip
    given = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
    began = time.monotonic()
    llm.generate(given, asked, use_tqdm=False)
    return time.monotonic() - began


def first_token_seconds(llm: Any, prompts: Sequence[Sequence[int]]) -> float:
    """Time until each prompt has one token."""
    return seconds(llm, prompts, 1)


def step_seconds(llm: Any, prompts: Sequence[Sequence[int]]) -> float:
    """Time of a step that decodes all sequences, by when tokens arrive: a step with a prompt in it
    is left out."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    asked = SamplingParams(
        max_tokens=1 + STEPS, min_tokens=1 + STEPS, ignore_eos=True, temperature=0.0,
        detokenize=False, output_kind=RequestOutputKind.DELTA,
    )  # fmt: skip
    for number, prompt in enumerate(prompts):
        llm.llm_engine.add_request(f"{number}", {"prompt_token_ids": list(prompt)}, asked)
    arrived = []
    while llm.llm_engine.has_unfinished_requests():
        if len(llm.llm_engine.step()) == len(prompts):
            arrived.append(time.perf_counter())
    return (arrived[-1] - arrived[0]) / (len(arrived) - 1)


def log_probabilities(llm: Any, prompt: Sequence[int]) -> list[float]:
    """The log-probability of each token of a prompt but the first, after those before it."""
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=1, prompt_logprobs=1, temperature=0.0, detokenize=False)
    (answer,) = llm.generate([{"prompt_token_ids": list(prompt)}], asked, use_tqdm=False)
    rows = zip(prompt[1:], answer.prompt_logprobs[1:], strict=True)
    return [row[token].logprob for token, row in rows]


def decisions(worker: Any) -> str:
    """What the pass decided, as one worker says it."""
    from vllm.distributed.parallel_state import get_tp_group

    from tftune.engines.engine_pass import made_pass

    pass_ = made_pass(get_tp_group().unique_name)
    return "no pass" if pass_ is None else pass_.table()


def begin_profile(worker: Any, device: str = "CUDA") -> None:
    """Let a worker note its kernels, or for "CPU" the operators that its host runs."""
    from torch.profiler import ProfilerActivity, profile

    worker.tftune_profile = profile(activities=[getattr(ProfilerActivity, device)])
    worker.tftune_profile.start()


def end_profile(worker: Any, device: str = "CUDA") -> dict[str, list[float]]:
    """End what `begin_profile` began: by name the microseconds of each call, those of an operator
    without those that it calls."""
    import torch
    from torch.autograd import DeviceType

    on_gpu = device == "CUDA"
    if on_gpu:
        torch.cuda.synchronize()
    worker.tftune_profile.stop()
    times: dict[str, list[float]] = {}
    for event in worker.tftune_profile.events():
        if event.device_type == getattr(DeviceType, device):
            us = event.time_range.elapsed_us() if on_gpu else event.self_cpu_time_total
            times.setdefault(event.name, []).append(us)
    return times


Kernels = dict[str, tuple[float, float]]
"""The calls of each kernel or operator in a step, and the microseconds of one."""


def profiled(llm: Any, prompts: Sequence[Sequence[int]], steps: int) -> Kernels:
    """The kernels of a step of decoding, or with no steps those of a prompt.

    A median, since the first kernels of a profile wait until all ranks have begun theirs. Of the
    rank that has the shortest one, since a collective of the others waits for that rank.
    """
    calls: Counter[str] = Counter()
    for tokens in [1, 1 + steps] if steps else [1]:
        llm.collective_rpc(begin_profile)
        seconds(llm, prompts, tokens)
        ranks = llm.collective_rpc(end_profile)
        counted = {name: len(us) for name, us in ranks[0].items()}
        calls = Counter(counted) - calls
    shortest = {name: min(median(one[name]) for one in ranks if name in one) for name in calls}
    return {name: (count / max(steps, 1), shortest[name]) for name, count in calls.items()}


def operators(llm: Any, prompt: Sequence[int]) -> Kernels:
    """What the first rank's host runs for a prompt."""
    llm.collective_rpc(begin_profile, args=("CPU",))
    first_token_seconds(llm, [prompt])
    first, *_ = llm.collective_rpc(end_profile, args=("CPU",))
    return {name: (len(us), fmean(us)) for name, us in first.items()}


def kernels_beside(plain: Kernels, ours: Kernels) -> list[str]:
    """A table of the kernels of both engines, those first that differ most, and their sums."""

    def total(kernels: Kernels, name: str) -> float:
        calls, us = kernels.get(name, (0.0, 0.0))
        return calls * us

    names = {*plain, *ours}
    most = sorted(names, key=lambda name: (-abs(total(plain, name) - total(ours, name)), name))
    lines = [f"{'vLLM: calls':>12} {'us':>8} {'ours: calls':>12} {'us':>8}  of one step"]
    for name in most[:KERNELS]:
        one, other = plain.get(name, (0.0, 0.0)), ours.get(name, (0.0, 0.0))
        lines.append(f"{one[0]:12.1f} {one[1]:8.1f} {other[0]:12.1f} {other[1]:8.1f}  {name[:70]}")
    sums = [sum(total(kernels, name) for name in kernels) for kernels in (plain, ours)]
    return [*lines, f"{'sum':>12} {sums[0]:8.1f} {'':12} {sums[1]:8.1f}"]


def calls_of(name: str, turn: int, tokens: Sequence[int]) -> list[list[Sequence[int]]]:
    """The calls of a case in one turn, each of one or more prompts."""
    words, number = name.rsplit(" ", 1)
    if words == "decode":
        return [[tokens[place : place + SHORT] for place in range(int(number))]]
    lengths = [len(tokens)]
    if words == NEW:
        lengths = [int(number) + APART * turn]
    elif words == IN_A_ROW:  # shorter than those of NEW
        lengths = [int(number) - 1 - ROW * turn - place for place in range(ROW)]
    return [[prompt_of(length, tokens)] for length in lengths]


def prompt_of(length: int, tokens: Sequence[int]) -> Sequence[int]:
    if not 1 <= length <= len(tokens):
        raise ValueError(
            f"a prompt of {length} tokens is none of 1 to {len(tokens)}; "
            "give fewer --rounds, or a longer --prompt"
        )
    return tokens[:length]


def started(options: argparse.Namespace, folder: Path) -> dict[str, tuple[Any, float, set[int]]]:
    """Both engines by the plug-in's variable, each with the seconds that it took to start and its
    processes."""
    both = {}
    for variable in ("0", options.variable) if options.plain_first else (options.variable, "0"):
        before = processes()
        llm, took_s = engine(options, folder, variable)
        both[variable] = llm, took_s, processes() - before
        if not both[variable][2]:
            raise RuntimeError("no process of the engine is listed in /proc: none could be stopped")
        words = "without" if variable == "0" else "with"
        print(f"{words} the plug-in: started in {took_s:.1f} s", flush=True)
    return both


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    from vllm.plugins import load_general_plugins

    model = MODELS[options.model]
    (folder / "config.json").write_text(json.dumps(config_of(model, options.layers)))
    until = time.monotonic() + options.seconds
    os.environ[VARIABLE] = options.variable
    load_general_plugins()  # vLLM does it once in a process: our hooks look at the variable
    both = started(options, folder)
    (plain, plain_s, plains), (ours, ours_s, own) = both["0"], both[options.variable]
    turns = (plain, own), (ours, plains)  # an engine, and the processes of the one that waits

    def each(call: Callable[..., Kernels], *given: Any) -> list[Kernels]:
        """Of both engines, the other one stopped."""
        said = []
        for llm, waiting in turns:
            with stopped(waiting):
                said.append(call(llm, *given))
        return said

    print(ours.collective_rpc(decisions)[0], flush=True)
    tokens = [(7 + 31 * place) % model.vocabulary for place in range(options.prompt - 2)]
    probe = prompt_of(PROBE, tokens)
    first, again, other = (log_probabilities(llm, probe) for llm in (plain, plain, ours))
    measured: dict[str, Any] = {"starts": [plain_s, ours_s], "cases": {}, "options": sys.argv[1:]}
    for name, one in (("itself", again), ("apart", other)):
        measured[name] = max(abs(a - b) for a, b in zip(first, one, strict=True))
    least = options.prompt // 4
    cases = [f"decode {batch}" for batch in options.batches]
    for name in [*cases, f"prompt {options.prompt}", f"{NEW} {least}", f"{IN_A_ROW} {least}"]:
        call = step_seconds if name in cases else first_token_seconds
        times: list[list[float]] = [[], []]
        for turn in range(options.rounds + 1):
            if time.monotonic() > until:
                break
            every = calls_of(name, turn, tokens)
            for place in (0, 1) if turn % 2 else (1, 0):
                llm, waiting = turns[place]
                with stopped(waiting):
                    took = [call(llm, prompts) for prompts in every]
                times[place] += took[len(took) > 1 :] if turn else []
        if min(map(len, times)):
            measured["cases"][name] = {"plain_s": times[0], "ours_s": times[1]}
    for batch in options.profile:
        prompts = [tokens[place : place + SHORT] for place in range(batch)] or [tokens]
        said = each(profiled, prompts, STEPS if batch else 0)
        measured.setdefault("kernels", {})[batch] = said
        print(f"{batch or 'a prompt'}", *kernels_beside(*said), sep="\n", flush=True)
    for length in options.host:
        for words in ("once", "again"):
            said = each(operators, prompt_of(length, tokens))
            measured.setdefault("operators", {})[f"{length} tokens, {words}"] = said
            print(f"{length} tokens, {words}", *kernels_beside(*said), sep="\n", flush=True)
    return measured


def report(found: dict[str, Any], options: argparse.Namespace, target: str) -> str:
    import vllm

    lines, ratios = [f"{'case':25} {'vLLM ms':>9} {'ours ms':>9} {'ratio':>6}"], {}
    for name, one in found["cases"].items():
        ours, plain = median(one["ours_s"]), median(one["plain_s"])
        ratios[name] = plain / ours
        batch = int(name.split()[1]) if name.startswith("decode") else 0
        rate = f"{batch / plain:10.0f} {batch / ours:10.0f} tokens/s" if batch else ""
        lines.append(f"{name:25} {plain * 1e3:9.3f} {ours * 1e3:9.3f} {ratios[name]:6.3f} {rate}")
    decode = geometric_mean(ratio for name, ratio in ratios.items() if name.startswith("decode"))
    prompt = [ratio for name, ratio in ratios.items() if name.startswith("prompt")]
    lines.append(f"log-probabilities: itself {found['itself']:.1e}, apart {found['apart']:.1e}")
    lines.append(
        f"RESULT vllm version={vllm.__version__} target={target} model={options.model} "
        f"{decode=:.3f} prompt={prompt[0] if prompt else float('nan'):.3f} "
        f"worst={min(ratios.values()):.3f} start_s={found['starts'][1]:.1f} "
        f"plain_start_s={found['starts'][0]:.1f}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = launch.parser(__doc__)
    parser.add_argument("--model", choices=[*MODELS], default="llama3.1-8b")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--prompt", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--backend", help="of attention, where vLLM shall not choose")
    parser.add_argument("--variable", choices=["1", "first"], default="1")
    parser.add_argument("--few", action="store_true", help="capture these batches only")
    batches = {"type": int, "nargs": "*", "default": []}
    parser.add_argument("--profile", **batches, help="of so many sequences; 0: of the prompt")
    parser.add_argument("--host", type=int, nargs="*", default=[], help="of prompts so long")
    parser.add_argument("--plain-first", action="store_true", help="start vLLM alone first")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds + 30, exit=True)
    os.environ.update(launch.NO_MULTICAST, VLLM_WORKER_MULTIPROC_METHOD="spawn")
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # `decisions` is sent to the workers
    from tftune.db.target import detect

    target = detect().name
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(options, Path(folder))
    if options.json:
        options.json.write_text(json.dumps(measured))
    print(report(measured, options, target), flush=True)
    sys.stdout.flush()
    os._exit(0)  # engines whose graphs hold communicators: nothing is torn down


if __name__ == "__main__":
    main()
