"""The commands that pages print, and what stands for those that need more than a wheel."""

from __future__ import annotations

import lzma
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import serve_load
import shipped
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tftune.models.artifact import SHIPPED
from tftune.serve import artifacts
from tftune.serve.database import Database

ROOT = Path(__file__).resolve().parent.parent
README, QUICKSTART, NODE, FIRST_MINUTE, SERVICE = PAGES = (
    "README.md", "docs/quickstart.md", "docs/tune-a-node.md", "docs/compile-pass.md",
    "docs/service.md",
)  # fmt: skip
PROGRAMS = r"([A-Z_]+=\S+ )?(\S*/bin/)?(tftune|make|pip|python|torchrun|docker|sqlite3) "

GPUS, HERE, CLONE = "measures on GPUs", "asks for the GPUs of this machine", "is of a clone"
MODEL = "--on model --target mi300x8 --mode graph --effort quick"
TUNED = "--on model --plan all-reduce --batches 1 --prefill 1024 --budget 1s"
CHIP = (
    "--shapes engine:m=1024+2048,n=7168 --chip nvidia-l40sx2.chip.json --on model --target h200x2"
)
DECODE = "batch=1,q_heads=64,kv_heads=8,head_dim=128,kv_len=8192,world=8"
REHEARSED: dict[str, tuple[str, str]] = {
    "make search": (f"{CLONE}; .ci/run gives it", ""),
    "make test": (f"{CLONE}; .ci/run gives it", ""),
    "python benchmarks/serve_walk.py": (f"{CLONE}; test_serve_process runs it", ""),
    "pip install '.[tune,cuda]'": ("takes packages from a registry; the extras are checked", ""),
    "pip install '.[tune]'": ("takes packages from a registry; the extras are checked", ""),
    "pip install '.[serve]'": ("takes packages from a registry; the extras are checked", ""),
    "pip install .": ("what `environment` does with the wheel", ""),
    "POSTGRES_PASSWORD=... docker compose -f docker/compose.yaml up": ("needs Docker", ""),
    "tftune serve --db postgresql://user:password@host/name": ("needs PostgreSQL", ""),
    'sqlite3 tftune-serve.db ".backup copy.db"': ("is a program of its own", ""),
    "tftune serve": ("ends when it is stopped; `service` starts it", ""),
    "tftune serve --anonymous-read": ("ends when it is stopped; test_serve_access asks it", ""),
    "tftune audit OP": ("compiles 1,559 kernels: an hour", ""),
    "tftune verify OP": (GPUS, ""),
    "tftune verify OP --json": (GPUS, ""),
    "tftune verify all_gather_gemm": (GPUS, ""),
    "tftune calibrate": (GPUS, "tftune calibrate --emulated h200x2 --out nvidia-l40sx2.chip.json"),
    "tftune tune": (GPUS, "tftune tune --show h200x8"),
    "tftune tune OP": (GPUS, "tftune tune OP --show h200x8"),
    "tftune tune all_gather_gemm --shapes engine --budget 60m": (
        GPUS, "tftune tune all_gather_gemm --shapes engine --budget 60m --show h200x8"
    ),
    "tftune tune --model config.json --tp 8": (
        GPUS, f"tftune tune --model config.json --tp 8 --target mi300x8 {TUNED} --db model.db"
    ),
    "tftune tune --model config.json": (
        GPUS, f"tftune tune --model config.json --target h200x2 {TUNED}"
    ),
    "tftune search OP": (GPUS, f"tftune search OP --shapes paper {MODEL} --budget 3s"),
    "tftune search all_gather_gemm --shapes paper --on model --target mi300x8": (
        "takes a minute and a half",
        "tftune search all_gather_gemm --shapes paper --on model --target mi300x8 --mode graph "
        "--budget 3s",
    ),
    "tftune search all_gather_gemm --shapes engine --chip nvidia-l40sx2.chip.json --budget 30m": (
        GPUS, f"tftune search all_gather_gemm {CHIP} --budget 3s"
    ),
    "tftune search all_gather_gemm --shapes engine --chip nvidia-l40sx2.chip.json --portfolio "
    "--budget 15m": (GPUS, f"tftune search all_gather_gemm {CHIP} --portfolio"),
    "tftune search all_gather_gemm --shapes heap": (
        GPUS, f"tftune search all_gather_gemm --shapes heap:m=1024,n=2560 {MODEL} --db heap.db"
    ),
    "tftune facts flash_decode": (
        GPUS,
        f"tftune facts flash_decode --shapes {DECODE} --lengths chat/1 --on model --target h200x8 "
        "--db facts.db",
    ),
    "tftune study taxes OP SHAPE": (
        GPUS, "tftune study taxes OP SHAPE --on model --target h200x8"
    ),
    "tftune study nodes OP": ("takes 12 s", "tftune study nodes OP --shapes paper:m=16 --seeds 5"),
    "tftune select OP SHAPE": (HERE, "tftune select OP SHAPE --target h200x8"),
    "tftune explain OP SHAPE": (HERE, "tftune explain OP SHAPE --target h200x8"),
    "tftune pull OP": (HERE, "tftune pull flash_decode --target h200x8 --stage candidate"),
}  # fmt: skip
"""Commands that cannot run as printed without GPUs, within seconds, from a wheel: why, and what
runs instead, which is the same command; "" where nothing can."""


def tokens(page: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text()):
        yield from (token, *(token.children or []))


def lines(page: str) -> list[str]:
    """What a reader would type, in the page's order, each once: lines of its blocks for a shell,
    and commands within its text and tables."""
    found = list[str]()
    for token in tokens(page):
        if token.type == "fence" and token.info == "sh":
            found += [re.split(r"\s+#", line)[0] for line in token.content.splitlines() if line]
        elif token.type == "code_inline" and re.match(PROGRAMS, token.content):
            found.append(token.content)
    return list(dict.fromkeys(found))


def commands(page: str) -> list[str]:
    """Those that are one command each."""
    return [line for line in lines(page) if re.match(PROGRAMS, line)]


def script(page: str) -> list[str]:
    """The others, which a shell runs one after another."""
    return [line for line in lines(page) if not re.match(PROGRAMS, line)]


def python(page: str) -> list[str]:
    return [t.content for t in tokens(page) if t.type == "fence" and t.info == "python"]


def to_run(page: str, words: dict[str, str]) -> list[str]:
    """What a test gives to a shell: the commands as printed, or what stands for them; `words` for
    the page's OP, SHAPE and the like."""
    typed = [REHEARSED.get(line, ("", line))[1] for line in commands(page)]
    return [filled(line, words) for line in dict.fromkeys(typed) if line]


def filled(line: str, words: dict[str, str]) -> str:
    return re.sub(r"\b[A-Z]+\b", lambda found: words.get(found[0], found[0]), line)


def same_command(printed: str, run: str, names: Sequence[str]) -> bool:
    """Whether both are the same command of tftune; `names`: all there are, as `trials import`."""
    (name,) = (name for name in names if f"{printed} ".startswith(f"tftune {name} "))
    return f"{run} ".startswith(f"tftune {name} ")


CONFIRMED = """
from tftune import AllGatherGemm
from tftune.confirm.memory import Identity, Memory
from tftune.kernels.core.space import Config
from tftune.models.selection import Selection
found = Selection(Config("bsp"), "measured", "confirmed here", 10.0, 10.0)
memory = Memory.open(Identity("h100x2", {}, "", (0, 1), {}))
memory.keep({("graph", AllGatherGemm(16, 32, 64, 2)): found})
"""


class User:
    """A folder with the files that pages name, the commands of the installed wheel, and a service
    that holds the artifact of flash_decode that ships."""

    def __init__(self, home: Path, python: Path) -> None:
        self.home = home
        self.server = serve_load.Server(str(home / "tftune-serve.db"), home / "serve.log", python)
        self.port = self.server.port
        self.environment = os.environ | {
            "HOME": str(home), "PATH": f"{python.parent}:{os.environ['PATH']}",
            "TFTUNE_SERVE_DB": self.server.place, "TFTUNE_CACHE": str(home / "cache"),
        }  # fmt: skip
        (home / ".config/tftune").mkdir(parents=True)
        (home / ".config/tftune/client.toml").write_text(f'url = "http://127.0.0.1:{self.port}"')
        (home / ".venv").symlink_to(python.parent.parent)
        shutil.copy(ROOT / "tests/fixtures/models/llama-3.1-8b.json", home / "config.json")
        few = home / serve_load.SOURCE.relative_to(ROOT)
        few.parent.mkdir(parents=True)
        with lzma.open(serve_load.SOURCE, "rt") as file, lzma.open(few, "wt") as out:
            kept = [line for line in file if '"run":{' in line or "batch=1,q_heads=64" in line]
            out.writelines(kept)
        self.rows = sum('"trial":{' in line for line in kept)
        self.shell(f"python -c {shlex.quote(CONFIRMED)}")
        self.environment["TFTUNE_TOKEN"] = self.token("admin")
        path = SHIPPED / "flash_decode__h200x8.json"
        self.placed = str(shipped.document(path)["sha256"])
        with closing(Database.open(self.server.place)) as database:
            artifacts.add(database, path.read_bytes(), shipped.document(path), {"n": 1}, "test")

    def shell(self, *lines: str, folder: Path | None = None) -> str:
        """What a shell prints, each line before what comes of it. The first that fails ends it."""
        done = subprocess.run(
            ["bash", "-evo", "pipefail", "-c", "\n".join(lines)],
            cwd=folder or self.home, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def token(self, scope: str) -> str:
        said = self.shell(f"tftune tokens create me --scope {scope}")
        return re.findall(r"^tft_\S+", said, re.MULTILINE)[0]
