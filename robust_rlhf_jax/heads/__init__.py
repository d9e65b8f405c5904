"""`robust-rlhf fit`: a reward head from embeddings of any size, and a weight for every pair."""
