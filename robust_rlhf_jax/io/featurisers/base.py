"""What turns texts into numbers."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from ..texts import Texts


@runtime_checkable
class Featuriser(Protocol):
    """Features φ(prompt, response) of texts, learnt without labels.

    `names`: one per feature, known after `fit`; `fit(texts)`: (chosen [N, p], rejected [N, p]), features learnt from
    the pairs without regard to which side is which; `transform(prompts, responses)` [N, p]: the same features of other
    texts; `settings()`: what a file of the reward head has to say about them; `arrays()`: what it has to hold. With
    `LEARNS = False` there is nothing to learn: `transform` works without `fit`.

    **Example:**

    >>> from robust_rlhf_jax.io import FEATURISERS, Featuriser, Texts
    >>> made = FEATURISERS["format"]()
    >>> chosen, rejected = made.fit(Texts(["Hi"], ["Hello!"], ["What?"]))
    >>> isinstance(made, Featuriser), chosen.shape, made.names[:2]
    (True, (1, 10), ('log_words', 'log_lines'))
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    def fit(self, texts: Texts) -> tuple[Float[np.ndarray, "N p"], Float[np.ndarray, "N p"]]: ...

    def transform(self, prompts: list[str], responses: list[str]) -> Float[np.ndarray, "N p"]: ...

    def settings(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, np.ndarray]: ...
