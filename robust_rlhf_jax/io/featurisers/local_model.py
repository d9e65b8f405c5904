"""Embeddings by a model in a local folder: sentence-transformers, or the mean last state of a transformers model."""

from pathlib import Path
from typing import Any

import numpy as np

from ..texts import Texts

BATCH = 32


class LocalModel:
    """The model at `path`; nothing is downloaded, and code that comes with a model is not run.

    **Raises:** ValueError for a folder without a model, ImportError without the extra `embed`.
    """

    LEARNS = False

    def __init__(self, path: str | Path):
        self.path = Path(path)
        if not (self.path / "config.json").is_file() and not (self.path / "modules.json").is_file():
            raise ValueError(f"{path} is no folder of a model: it has neither config.json nor modules.json.")
        self._width = 0
        self._embed = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"e{i}" for i in range(self._width))

    def fit(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        return self.transform(texts.prompt, texts.chosen), self.transform(texts.prompt, texts.rejected)

    def transform(self, prompts: list[str], responses: list[str]) -> np.ndarray:
        self._embed = self._embed or _embedder(self.path)
        joined = [f"{p}\n\n{r}" if p else r for p, r in zip(prompts, responses, strict=True)]
        values = self._embed(joined)
        self._width = values.shape[1]
        return values

    def settings(self) -> dict[str, Any]:
        return {"featuriser": "model", "path": str(self.path)}

    def arrays(self) -> dict[str, np.ndarray]:
        return {}


def _embedder(path: Path):
    try:
        if (path / "modules.json").is_file():
            from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]

            model = SentenceTransformer(str(path), local_files_only=True, trust_remote_code=False)
            return lambda texts: model.encode(texts, batch_size=BATCH, show_progress_bar=False)
        return _mean_states(path)
    except ImportError as error:
        raise ImportError(
            f"a local model needs packages ({error}): pip install 'robust-rlhf-jax[embed]'"
        ) from None


def _mean_states(path: Path):
    import torch  # pyright: ignore[reportMissingImports]
    from transformers import AutoModel, AutoTokenizer  # pyright: ignore[reportMissingImports]

    options = {"local_files_only": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(str(path), **options)
    model = AutoModel.from_pretrained(str(path), use_safetensors=True, **options).eval()

    @torch.no_grad()
    def embed(texts: list[str]) -> np.ndarray:
        rows = []
        for start in range(0, len(texts), BATCH):
            batch = tokenizer(
                texts[start : start + BATCH], padding=True, truncation=True, return_tensors="pt"
            )
            states, mask = model(**batch).last_hidden_state, batch["attention_mask"][..., None]
            rows.append(((states * mask).sum(1) / mask.sum(1)).float().numpy())
        return np.concatenate(rows)

    return embed
