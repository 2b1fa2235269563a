"""What the plug-in gains in vLLM itself: tokens per second of a model with random weights.

usage: python benchmarks/vllm_llama.py [--model llama3.1-8b|qwen2.5-7b] [--layers 32]
           [--batches 1 16 64 256] [--prompt 4096] [--rounds 7] [--seconds 540]
           [--backend TRITON_ATTN] [--variable 1|first] [--few] [--profile 256] [--json FILE]

Two engines share the GPUs, one without the plug-in and one with it, and take turns. Each is vLLM's
own `LLM` with tensor parallelism over all GPUs here, its own all-reduce, and CUDA graphs of the
sizes that it captures by default, or with --few of these batches. A decode step is (time of 65
tokens - time of 1) / 64, for all sequences of a batch; a prompt is the time to its first token.
Times are medians over rounds, with all that vLLM does on the host. `apart` is the largest
difference between the two engines in a log-probability of a prompt's own tokens; `itself`, that
between two runs of the engine without the plug-in. --profile: which kernels a step of decoding so
many sequences spends its time in, in both engines, by torch's profiler.

RESULT vllm version=.. target=.. model=.. decode=.. prompt=.. worst=.. start_s=.. plain_start_s=..
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import launch
from parallel_models import MODELS, Model

STEPS = 64
SHORT = 16
"""Tokens of a prompt that is decoded."""
KERNELS = 20
"""Of a profile, that are shown."""
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
    few = {"cudagraph_capture_sizes": sorted(options.batches)} if options.few else {}
    began = time.monotonic()
    made = LLM(
        model=str(folder), load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16",
        tensor_parallel_size=torch.cuda.device_count(), seed=0, enable_prefix_caching=False,
        gpu_memory_utilization=0.42, max_model_len=options.prompt + 128,
        max_num_batched_tokens=options.prompt, max_num_seqs=max(options.batches),
        attention_backend=options.backend, disable_log_stats=True,
        compilation_config=few,
    )  # fmt: skip
    return made, time.monotonic() - began


def seconds(llm: Any, prompts: Sequence[Sequence[int]], tokens: int) -> float:
    """Time of one call that makes so many tokens behind each prompt."""
    from vllm import SamplingParams

    asked = SamplingParams(max_tokens=tokens, min_tokens=tokens, ignore_eos=True, temperature=0.0,
                           detokenize=False)  # fmt: skip
    given = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
    began = time.monotonic()
    llm.generate(given, asked, use_tqdm=False)
    return time.monotonic() - began


def log_probabilities(llm: Any, prompt: Sequence[int]) -> list[float]:
    """Of each token of a prompt but the first, after those before it."""
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


def begin_profile(worker: Any) -> None:
    """From now on a worker notes its kernels."""
    from torch.profiler import ProfilerActivity, profile

    worker.tftune_profile = profile(activities=[ProfilerActivity.CUDA])
    worker.tftune_profile.start()


def end_profile(worker: Any) -> dict[str, float]:
    """Microseconds of each kernel since then."""
    import torch

    torch.cuda.synchronize()
    worker.tftune_profile.stop()
    averages = worker.tftune_profile.key_averages()
    return {one.key: one.self_device_time_total for one in averages}


def profiled(llm: Any, prompts: Sequence[Sequence[int]]) -> dict[str, float]:
    """Microseconds of each kernel in a step of decoding, on the first rank."""
    found = []
    for tokens in (1, 1 + STEPS):
        llm.collective_rpc(begin_profile)
        seconds(llm, prompts, tokens)
        found.append(llm.collective_rpc(end_profile)[0])
    first, all_of_it = found
    return {name: (us - first.get(name, 0.0)) / STEPS for name, us in all_of_it.items()}


def kernels_beside(plain: dict[str, float], ours: dict[str, float]) -> list[str]:
    """A table of the kernels of both engines, those first that differ most, and their sums."""
    names = {*plain, *ours}
    both = {name: (plain.get(name, 0.0), ours.get(name, 0.0)) for name in names}
    most = sorted(both, key=lambda name: (-abs(both[name][0] - both[name][1]), name))[:KERNELS]
    sums = sum(plain.values()), sum(ours.values())
    shown = [*((name, *both[name]) for name in most), ("all kernels", *sums)]
    head = f"{'vLLM us':>9} {'ours us':>9}  kernel, of one step"
    return [head, *(f"{one:9.1f} {other:9.1f}  {name[:70]}" for name, one, other in shown)]


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    model = MODELS[options.model]
    (folder / "config.json").write_text(json.dumps(config_of(model, options.layers)))
    until = time.monotonic() + options.seconds
    plain, plain_s = engine(options, folder, "0")
    print(f"without the plug-in: started in {plain_s:.1f} s", flush=True)
    ours, ours_s = engine(options, folder, options.variable)
    print(f"with the plug-in: started in {ours_s:.1f} s", flush=True)
    print(ours.collective_rpc(decisions)[0], flush=True)
    tokens = [(7 + 31 * place) % model.vocabulary for place in range(options.prompt - 2)]
    probe = tokens[:1000]
    first, again, other = (log_probabilities(llm, probe) for llm in (plain, plain, ours))
    found: dict[str, Any] = {"starts": [plain_s, ours_s], "cases": {}}
    for name, one in (("itself", again), ("apart", other)):
        found[name] = max(abs(a - b) for a, b in zip(first, one, strict=True))
    cases = {f"decode {batch}": batch for batch in options.batches}
    for name, batch in {**cases, f"prompt {options.prompt}": 0}.items():
        prompts = [tokens[place : place + SHORT] for place in range(batch)] or [tokens]
        times: list[list[float]] = [[], []]
        for turn in range(options.rounds + 1):
            if time.monotonic() > until:
                break
            for place, llm in [(0, plain), (1, ours)][:: 1 if turn % 2 else -1]:
                took = seconds(llm, prompts, 1)
                if batch:
                    took = (seconds(llm, prompts, 1 + STEPS) - took) / STEPS
                times[place] += [took] if turn else []
        if min(map(len, times)):
            found["cases"][name] = {"plain_s": times[0], "ours_s": times[1]}
    if options.profile:
        prompts = [tokens[place : place + SHORT] for place in range(options.profile)]
        found["kernels_us"] = [profiled(llm, prompts) for llm in (plain, ours)]
        print("\n".join(kernels_beside(*found["kernels_us"])), flush=True)
    return found


def report(found: dict[str, Any], options: argparse.Namespace, target: str) -> str:
    import vllm

    lines, ratios = [f"{'case':12} {'vLLM ms':>9} {'ours ms':>9} {'ratio':>6}"], {}
    for name, one in found["cases"].items():
        ours, plain = median(one["ours_s"]), median(one["plain_s"])
        ratios[name] = plain / ours
        batch = int(name.split()[1]) if name.startswith("decode") else 0
        rate = f"{batch / plain:10.0f} {batch / ours:10.0f} tokens/s" if batch else ""
        lines.append(f"{name:12} {plain * 1e3:9.3f} {ours * 1e3:9.3f} {ratios[name]:6.3f} {rate}")
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
    parser.add_argument("--profile", type=int, help="of a step of so many sequences")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    faulthandler.dump_traceback_later(options.seconds + 30, exit=True)
    os.environ.update(launch.NO_MULTICAST, VLLM_WORKER_MULTIPROC_METHOD="spawn")
    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"  # `decisions` is sent to the workers
    from tftune.db.target import detect

    target = detect().name
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    if options.json:
        options.json.write_text(json.dumps(found))
    print(report(found, options, target), flush=True)
    sys.stdout.flush()
    os._exit(0)  # engines whose graphs hold communicators: nothing is torn down


if __name__ == "__main__":
    main()
