"""A reward from more pairs than fit into memory: `python benchmarks/streamed.py [--quick] [--parts equal disk linear]`.

- equal: the fit by passes beside that of memory, 60,000 pairs of 256 features; clean, a tenth planted, a tenth flipped.
- disk: a million pairs of 1,024 features in float16 (2 GB, written to --folder first), a twentieth planted, with
  `--memory 1GB`: passes, peak memory of the process, seconds of each kind of pass beside reading and multiplying the
  blocks once, and in all beside plain maximum likelihood by L-BFGS over the same source and scikit-learn's SGD.
- linear: one, three and ten million generated pairs of 256 features.

Prints Markdown. Bars: θ and weights within 1e-3 of memory's (flipped: told, no bar); at most 15 passes, 1.5 GB, twice
the time of reading and multiplying for a pass, three times that of L-BFGS in all; ten million pairs take at most twelve
times as long as one. Exits with 1 where one is missed. `--quick`: small sizes, no bars on time.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import Streaming, fit_differences, fit_source
from robust_rlhf_jax.rewards.streamed.config import COPIES
from robust_rlhf_jax.rewards.streamed.one_pass import Kind, Pass
from robust_rlhf_jax.rewards.streamed.passes import Passes
from robust_rlhf_jax.sources import ArraySource, GeneratedSource, ShardSource, open_pairs

EPSILON = 0.1
PARTS = ("equal", "disk", "linear")
EQUAL, DISK, LINEAR = (60_000, 256), (1_000_000, 1_024), (1_000_000, 3_000_000, 10_000_000)
QUICK_EQUAL, QUICK_DISK, QUICK_LINEAR = (20_000, 24), (60_000, 128), (30_000, 90_000, 300_000)
SHARD, POOL = 100_000, 10_007


class World:
    """Pairs of k normal features whose columns fall as j^(−½), θ such that margins have standard deviation 1.5."""

    def __init__(self, k: int, seed: int = 0):
        rng = np.random.default_rng(seed)
        self.scale = (np.arange(1, k + 1) ** -0.5).astype(np.float32)
        self.theta = (rng.normal(size=k) * 1.5 / np.sqrt(k) / self.scale).astype(np.float32)

    def pairs(self, n: int, seed: int, kind: str = "clean", share: float = 0.1) -> np.ndarray:
        """Preferred less other [n, k]; a `share` planted far out against θ, or the surest labels flipped."""
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, len(self.scale)), dtype=np.float32) * self.scale
        margins = x @ self.theta
        z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-margins)), 1, -1).astype(np.float32)[:, None]
        if kind == "planted":
            direction = self.scale**2 * self.theta
            far = -1.5 * np.sqrt(len(direction)) * direction / np.linalg.norm(self.scale * self.theta)
            bad = rng.random(n) < share
            z[bad] = far * (1 + 0.02 * rng.standard_normal((int(bad.sum()), len(far)), dtype=np.float32))
        if kind == "flipped":
            surest = np.argsort(-np.abs(margins))[: int(share * n)]
            z[surest] *= -np.sign(z[surest] @ self.theta)[:, None]
        return z

    def accuracy(self, theta: np.ndarray) -> float:
        """The share of 20,000 new pairs that θ orders as the true one does."""
        x = np.random.default_rng(99).standard_normal((20_000, len(self.scale))) * self.scale
        return float(np.mean((x @ theta > 0) == (x @ self.theta > 0)))


def equal(quick: bool) -> list[str]:
    """The fit by passes beside the fit in memory."""
    n, k = QUICK_EQUAL if quick else EQUAL
    world, missed = World(k), []
    print(f"\n| {n:,} × {k} | θ apart | weights apart, most | mean | left out | in memory | same decision |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("clean", "planted", "flipped"):
        z = world.pairs(n, 1, kind)
        # A little less than a fit in memory takes.
        source, streaming = ArraySource(z), Streaming(memory=int(0.9 * 4 * COPIES * n * k))
        found = fit_source(source, EPSILON, streaming=streaming)
        other = fit_differences(jnp.asarray(z), jnp.ones(n, jnp.float32), jnp.float32(EPSILON))
        apart = np.linalg.norm((found.theta - other.theta) * world.scale) / np.linalg.norm(
            other.theta * world.scale
        )
        weights = np.abs(np.asarray(found.weights) - np.asarray(other.weights))
        same = (float(found.epsilon) > 0) == (float(other.epsilon) > 0)
        print(
            f"| {kind} | {apart:.1e} | {weights.max():.1e} | {weights.mean():.1e} | "
            f"{100 * float(found.epsilon):.2f} % | {100 * float(other.epsilon):.2f} % | {'yes' if same else 'no'} |",
            flush=True,
        )
        if not same or (kind != "flipped" and (apart > 1e-3 or weights.max() > 1e-3)):
            missed.append(f"equal, {kind}")
    return missed


class Clock:
    """Seconds of every pass, by what it does; what lies between passes counts for the one before."""

    def __init__(self):
        self.passes: list[tuple[str, float, float]] = []
        self.now = ("", time.perf_counter(), 0.0)

    def __call__(self, doing: str, done: int, total: int) -> None:
        moment = time.perf_counter()
        if doing != self.now[0]:
            self.passes.append((*self.now[:1], self.now[2] - self.now[1], moment - self.now[2]))
            self.now = (doing, moment, moment)
        self.now = (doing, self.now[1], moment)

    def read(self) -> list[tuple[str, float]]:
        """(what was done, seconds of its blocks) of each pass."""
        self("end", 0, 0)
        return [
            (doing.split(": ")[1], seconds) for doing, seconds, _ in self.passes if doing.startswith("pass")
        ]


def written(folder: Path, n: int, k: int) -> Path:
    """The shards of the `disk` part, written if they are not there."""
    world, shards = World(k), folder / f"{n}x{k}"
    if not shards.exists():
        shards.mkdir(parents=True)
        for first in range(0, n, SHARD):
            z = world.pairs(min(SHARD, n - first), 1 + first, "planted", 0.05)
            np.save(shards / f"part{first // SHARD:04d}.npy", z.astype(np.float16))
    return shards


def peak() -> float:
    """The most memory that this process has had, in GB."""
    # Not getrusage: a new process inherits the peak of the one that started it.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6


def robust(shards: Path, memory: str) -> None:
    """The `disk` part in a process of its own, so that its peak is its own."""
    source, clock, world = ShardSource(shards), Clock(), World(ShardSource(shards).n_features)
    begun = time.perf_counter()
    found = jax.block_until_ready(fit_source(source, EPSILON, streaming=Streaming(memory=memory, tell=clock)))
    seconds = time.perf_counter() - begun
    passes = clock.read()
    kinds = list(dict.fromkeys(doing for doing, _ in passes))
    slowest = {kind: max(took for doing, took in passes if doing == kind) for kind in kinds}
    print(
        f"robust|{seconds}|{len(passes)}|{peak()}|{world.accuracy(np.asarray(found.theta))}|{float(found.epsilon)}|"
        + ";".join(f"{kind}={took:.2f}" for kind, took in slowest.items())
    )


@jax.jit
def _value_and_pull(block, theta):
    x = block.astype(jnp.float32)
    margins = x @ theta
    return jnp.sum(jax.nn.log_sigmoid(margins)), jax.nn.sigmoid(-margins) @ x


def plain(shards: Path, memory: str) -> None:
    """Maximum likelihood by SciPy's L-BFGS over the same blocks; the first pass is that of reading and multiplying."""
    passes, seconds = Passes(open_pairs(shards)), []

    def objective(theta):
        begun, at = time.perf_counter(), jnp.asarray(theta, jnp.float32)
        value, pull = passes.run(Pass("plain", _value_and_pull, (Kind.SUM, Kind.SUM), (at,)))
        seconds.append(time.perf_counter() - begun)
        rest = 0.5 * np.sum(theta**2)
        padded = (passes.padded - passes.n) * np.log(0.5)
        return (rest - value + padded) / passes.n, (theta - pull) / passes.n

    begun = time.perf_counter()
    found = minimize(
        objective, np.zeros(passes.n_features), jac=True, method="L-BFGS-B", options={"gtol": 1e-5}
    )
    total = time.perf_counter() - begun
    accuracy = World(passes.n_features).accuracy(found.x)
    print(f"plain|{total}|{passes.made}|{peak()}|{accuracy}|0|look={np.median(seconds):.2f}")


def sgd(shards: Path, memory: str) -> None:
    """scikit-learn's SGD on the logistic loss, one pass over blocks in their order and their opposites."""
    from sklearn.linear_model import SGDClassifier

    source, begun = open_pairs(shards), time.perf_counter()
    model = SGDClassifier(loss="log_loss", alpha=1e-6, fit_intercept=False, random_state=0)
    for block in source.blocks(4_096):
        sign = np.where(np.arange(len(block)) % 2, 1, -1)
        model.partial_fit(block.astype(np.float32) * sign[:, None], sign, classes=[-1, 1])
    seconds = time.perf_counter() - begun
    print(f"sgd|{seconds}|1|{peak()}|{World(source.n_features).accuracy(model.coef_[0])}|0|")


def alone(part: str, shards: Path, memory: str) -> list[str]:
    """What `part` prints in a process of its own."""
    command = [sys.executable, __file__, "--child", part, "--folder", str(shards), "--memory", memory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2_000:])
    return done.stdout.strip().splitlines()[-1].split("|")[1:]


def disk(quick: bool, folder: Path) -> list[str]:
    """A source on the disk that memory does not hold."""
    n, k = QUICK_DISK if quick else DISK
    memory = "30MB" if quick else "1GB"
    shards = written(folder, n, k)
    rows = {name: alone(name, shards, memory) for name in ("robust", "plain", "sgd")}
    print(
        f"\n| {n:,} × {k:,}, float16, --memory {memory} | seconds | passes | peak GB | order as θ does | left out |"
    )
    print("|---|---|---|---|---|---|")
    for name, (seconds, passes, most, accuracy, left, _) in rows.items():
        print(
            f"| {NAMES[name]} | {float(seconds):.1f} | {passes} | {float(most):.2f} | {100 * float(accuracy):.1f} % | "
            f"{100 * float(left):.2f} % |"
        )
    look = float(rows["plain"][5].split("=")[1])
    took = {kind: float(value) for kind, value in (part.split("=") for part in rows["robust"][5].split(";"))}
    print(
        f"\nReading and multiplying the blocks once: {look:.2f} s. The slowest pass of each kind, in these:"
    )
    print("\n| " + " | ".join(took) + " |\n|" + "---|" * len(took))
    print("| " + " | ".join(f"{value / look:.1f}" for value in took.values()) + " |")
    missed = [] if int(rows["robust"][1]) <= 15 else ["passes"]
    if not quick:
        missed += [] if float(rows["robust"][2]) <= 1.5 else ["peak memory"]
        missed += [] if float(rows["robust"][0]) <= 3 * float(rows["plain"][0]) else ["three times L-BFGS"]
        missed += [f"twice a look, {kind}" for kind, value in took.items() if value > 2 * look]
    return missed


NAMES = {
    "robust": "`fit_reward`",
    "plain": "maximum likelihood, SciPy's L-BFGS",
    "sgd": "scikit-learn's SGD, one pass",
}


def generated(world: World, n: int) -> Iterator[np.ndarray]:
    """n pairs in blocks, a twentieth planted: every pair is the sum of two of a pool, other two in every block."""
    pool = np.random.default_rng(1).standard_normal((POOL, len(world.scale)), dtype=np.float32) * world.scale
    far = world.pairs(POOL, 2, "planted", 1.0)
    for number, first in enumerate(range(0, n, POOL)):
        rng = np.random.default_rng([3, number])
        x = (pool + np.roll(pool, 1 + number, axis=0)) * np.float32(0.5**0.5)
        chosen = rng.random(POOL, dtype=np.float32) < 1 / (1 + np.exp(-x @ world.theta))
        x *= np.where(chosen, 1, -1).astype(np.float32)[:, None]
        bad = rng.random(POOL, dtype=np.float32) < 0.05
        x[bad] = far[bad]
        yield x[: n - first]


def linear(quick: bool) -> list[str]:
    """Seconds by the number of generated pairs, and how many of them go into making the pairs."""
    sizes, k = (QUICK_LINEAR, 16) if quick else (LINEAR, 256)
    world, seconds = World(k), []
    print(f"\n| generated pairs × {k} | seconds | in passes | making pairs | passes | left out |")
    print("|---|---|---|---|---|---|")
    for n in sizes:
        make = partial(generated, world, n)
        clock, begun = Clock(), time.perf_counter()
        memory = max(4 * 101 * n, 4 * COPIES * 16_384 * k)
        source = GeneratedSource(make, n_pairs=n)
        found = jax.block_until_ready(
            fit_source(source, EPSILON, streaming=Streaming(memory=memory, tell=clock))
        )
        seconds.append(time.perf_counter() - begun)
        read = clock.read()
        passes, begun = len(read), time.perf_counter()
        for _ in make():
            pass
        making = passes * (time.perf_counter() - begun)
        print(
            f"| {n:,} | {seconds[-1]:.0f} | {sum(took for _, took in read):.0f} | {making:.0f} | {passes} | "
            f"{100 * float(found.epsilon):.2f} % |",
            flush=True,
        )
    ratio = sizes[-1] / sizes[0]
    return [] if quick or seconds[-1] <= 1.2 * ratio * seconds[0] else ["linear"]


CHILDREN = {"robust": robust, "plain": plain, "sgd": sgd}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "streamed_pairs")
    parser.add_argument("--memory", default="1GB", help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        CHILDREN[given.child](given.folder, given.memory)
        return 0
    missed = []
    if "equal" in given.parts:
        missed += equal(given.quick)
    if "disk" in given.parts:
        missed += disk(given.quick, given.folder)
    if "linear" in given.parts:
        missed += linear(given.quick)
    print(f"\n{environment()}" + "".join(f"\nMISSED: {what}" for what in missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
