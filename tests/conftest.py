"""What every test shares: the repository's root, and the skip of tests that need more GPUs than
there are."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from command_line import Ran, Tftune
    from fake_service import FakeService
    from serving import Served

    from tftune.client.http import Service
    from tftune.db.store import Store
    from tftune.db.trial import Trial
    from tftune.kernels.core.shape import Shape
    from tftune.pipeline.training_job import Fit

os.environ.setdefault("MPLBACKEND", "Agg")
# One kernel of OpenBLAS on every x86: others round differently, and a fit that has several best
# answers then takes another one (seen with AVX-512: 3 of 7 artifacts).
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")
# Workers have all cores busy: threads of BLAS would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shared 2-core machine is slow at times, and a slow example is no counterexample.
settings.register_profile("tftune", deadline=None)
settings.load_profile("tftune")


@pytest.fixture(autouse=True)
def told_of_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins without GPUs that another one described."""
    monkeypatch.setattr("tftune.kernels.core.chips._DESCRIBED", {})


@pytest.fixture(autouse=True)
def selectors_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test leaves the process without a default selector of its own, and without what another
    one logged."""
    monkeypatch.setattr("tftune._default", None)
    monkeypatch.setattr("tftune.models.compatibility._LOGGED", set())


@pytest.fixture(scope="session", autouse=True)
def ranks_are_forked() -> Iterator[None]:
    """Emulated ranks start with torch imported. They die with pytest: a rank that waits for a flag
    would poll for ever where pytest is killed."""
    from forked_ranks import forked

    with forked():
        yield


@pytest.fixture(autouse=True)
def nothing_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a cache folder of its own, and no open memory."""
    monkeypatch.setenv("TFTUNE_CACHE", str(tmp_path / "tftune-cache"))
    monkeypatch.setattr("tftune.confirm.memory.Memory._opened", {})


@pytest.fixture(autouse=True)
def collectives_are_not_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of NCCL and RCCL that this machine sets enter no build that a test makes."""
    from tftune.db.collectives import variables_of

    for assignment in variables_of(os.environ).split():
        monkeypatch.delenv(assignment.partition("=")[0])


@pytest.fixture
def ranks_start_anew() -> Iterator[None]:
    """Ranks are new processes in this test."""
    from forked_ranks import started_anew

    with started_anew():
        yield


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent


def gpus_here() -> int:
    """GPUs that torch sees; 0 without torch."""
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip `@pytest.mark.gpu(count)` where there are fewer GPUs. torch is imported only where such
    a test was collected."""
    wanted = [(item, marker) for item in items if (marker := item.get_closest_marker("gpu"))]
    here = gpus_here() if wanted else 0
    for item, marker in wanted:
        count = marker.args[0] if marker.args else 1
        if here < count:
            reason = f"needs {count} GPUs and this machine has {here}"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def make_rows() -> Callable[..., list[Trial]]:
    """make_rows(shapes, mode, target, bench): final rows of a full matrix, timed by the analytic
    model; 9 noisy rounds on "node"."""
    from tftune.db.target import Target
    from tftune.db.trial import Measurement, Trial
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.core.revision import installed
    from tftune.kernels.core.space import Config
    from tftune.models.timeline.simulator import predict

    small = {"block_m": 16, "block_n": 32, "block_k": 128, "group_m": 1, "split_k": 1}
    small |= {"num_warps": 4, "num_stages": 4, "comm_programs": 8, "rows_per_flag": 16}

    def build(
        shapes: tuple[Shape, ...], mode: str = "graph", target: str = "h200x8", bench: str = "model"
    ) -> list[Trial]:
        chip = Target.parse(target).chip
        configs = {config for shape in shapes for config in SPACE.defaults(shape, chip)}
        for variant in ("pull", "push"):
            configs.add(SPACE.complete(Config(variant, **small, k_per_flag=1024)))
        noise = [1 + 0.001 * (i % 5) for i in range(9 if bench == "node" else 1)]
        rows = []
        for shape in shapes:
            valid = (c for c in sorted(configs) if SPACE.why_invalid(shape, c, chip) is None)
            times = {config: predict(shape, config, mode, chip) for config in valid}
            bsp = min(us for config, us in times.items() if config.variant == "bsp")
            bsp_us = tuple(bsp * part for part in reversed(noise))
            for config, us in times.items():
                found = Measurement(tuple(us * part for part in noise), bsp_us, 1e-4)
                key = shape, config, mode, target, bench, "run", installed(shape.op, config.variant)
                rows.append(Trial(*key, found, "final", "2026-11-21"))
        return rows

    return build


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test makes a database; there is none yet."""
    return tmp_path / "t.db"


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with all tables: Optuna takes longer to make its own than most tests of the search
    take."""
    from tftune.db.store import Store

    path = tmp_path_factory.mktemp("empty") / "a.db"
    with Store.open(path) as store:
        store.optuna_storage()
    return path


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Iterator[Store]:
    """A copy of it for one test, open."""
    from tftune.db.store import Store

    with Store.open(Path(shutil.copy(empty, tmp_path))) as store:
        yield store


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """The service over a fresh database, of both kinds."""
    from serving import opened

    with opened(request.param, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def one_server() -> Iterator[FakeService]:
    """A fake service of a file of tests."""
    from fake_service import running

    with running() as found:
        yield found


@pytest.fixture
def server(one_server: FakeService) -> FakeService:
    """It without anything in it."""
    fresh = type(one_server)()
    one_server.__dict__.update(fresh.__dict__ | {"url": one_server.url})
    return one_server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def service(server: FakeService, pauses: list[float]) -> Service:
    """The same, asked by a client that notes its pauses in place of waiting: only they take
    time."""
    from fake_service import TOKEN

    from tftune.client.http import Service

    return Service.at(
        server.url, TOKEN, sleep=pauses.append, clock=lambda: sum(pauses), draw=lambda: 1.0
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small effort over a tenth of the space, since listing a space takes longest in tests of the
    search."""
    from fake_bench import SPACE, use

    from tftune.tuner.search.search import EFFORTS, Effort

    monkeypatch.setitem(EFFORTS, "tiny", Effort(12, 2, "for tests"))
    use(monkeypatch, SPACE)


@pytest.fixture
def tftune(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Tftune:
    """Run a command line inside this process, in an empty folder."""
    import command_line

    monkeypatch.chdir(tmp_path)
    for name in ("TFTUNE_DB", "TFTUNE_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(line: str) -> Ran:
        capsys.readouterr()
        return command_line.Ran((command_line.run(line), *capsys.readouterr()))

    return run


@pytest.fixture(scope="module")
def fits() -> dict[tuple[Trial, ...], Fit]:
    """What `fitted_once` keeps."""
    return {}


@pytest.fixture
def fitted_once(monkeypatch: pytest.MonkeyPatch, fits: dict[tuple[Trial, ...], Fit]) -> None:
    """The same rows are judged once in a file of tests, whichever command asks for them: to hold
    out every shape of them takes longest."""
    from tftune.pipeline.training_job import Source, fit

    def remembered(source: Source, judged: bool = True, **options: Any) -> Fit:
        rows = tuple(source.trials)
        if judged and rows not in fits:
            fits[rows] = fit(source, **options)
        return fits[rows] if judged else fit(source, judged=False, **options)

    monkeypatch.setattr("tftune.pipeline.training_job.fit", remembered)


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a quick search of two shapes on the model bench; workers share one."""
    from command_line import SEARCH, run
    from filelock import FileLock

    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    db, partly = folder / "searched.db", folder / "partly.db"
    with FileLock(folder / "searched.lock"):
        if not db.exists():
            assert run(f"{SEARCH} --db {partly}") == 0
            partly.rename(db)
    return db


@pytest.fixture
def db(searched: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copy(searched, tmp_path / "mine.db"))
