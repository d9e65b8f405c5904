"""`robust-rlhf embed` and `fit`: embeddings of texts, and a reward head with a weight for each pair from any number."""
