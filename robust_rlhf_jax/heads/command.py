"""The fit of a source as a command: passes on a bar, one sentence, and files."""

import time
from pathlib import Path

import numpy as np

from robust_rlhf_jax.io.reward_head import RewardHead
from robust_rlhf_jax.outputs import environment, whole_folder, write_json
from robust_rlhf_jax.rewards import RewardModel, Streaming, fit_reward
from robust_rlhf_jax.rewards.streamed.engine import Engine
from robust_rlhf_jax.sources import PairSource, open_pairs
from robust_rlhf_jax.terminal import marked

from .progress import shown_passes

FILES = ("reward_model.npz", "reward_head.safetensors", "weights.npy", "suspicion.npy", "fit.json")


def fit_command(
    path: Path,
    epsilon: float | None = None,
    memory: str | None = None,
    checkpoint: Path | None = None,
    out: Path = Path("fit"),
    quiet: bool = False,
    engine: Engine | None = None,
) -> RewardModel:
    """Fit a reward to the pairs at `path`, print what was found, and write `FILES` to `out`.

    **Raises:** as `open_pairs` and `fit_reward`; ValueError if `out` cannot be written.
    """
    from rich.console import Console

    console, source = Console(), open_pairs(path)
    with whole_folder(out, FILES) as folder:
        begun = time.monotonic()
        with shown_passes(quiet) as tell:
            streaming = Streaming(memory=memory, checkpoint=checkpoint, tell=tell, engine=engine)
            model = fit_reward(source, epsilon, streaming=streaming)
            said = model.message
        _write(folder, source, model, {"source": str(path), "epsilon": epsilon, "said": said})
    seconds = time.monotonic() - begun
    console.print(
        marked(f"{source.n_pairs:,} pairs of {source.n_features:,} features, in {seconds:.1f} s."),
        highlight=False,
    )
    console.print(marked(said), highlight=False)
    console.print(f"Wrote {', '.join(FILES)} in {marked(out)}", highlight=False)
    return model


def _write(folder: Path, source: PairSource, model: RewardModel, facts: dict) -> None:
    facts |= {"pairs": source.n_pairs, "features": source.n_features, "share_left_out": float(model.epsilon)}
    facts |= {"interval": [float(end) for end in model.interval], "fingerprint": source.fingerprint()}
    model.save(folder / FILES[0])
    names = tuple(f"f{number}" for number in range(source.n_features))
    RewardHead(names, np.asarray(model.theta), None, facts).save(folder / FILES[1])
    np.save(folder / FILES[2], np.asarray(model.weights))
    np.save(folder / FILES[3], np.asarray(model.suspicion))
    write_json(folder / FILES[4], facts | environment())
