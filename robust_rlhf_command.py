"""The installed script `robust-rlhf`: it hears Ctrl-C while JAX and the rest are still being imported."""

import os
import signal
import sys


def main() -> None:
    """`robust_rlhf_jax.cli.main`, imported under a handler that ends at once, whatever code is half imported."""
    before = signal.signal(signal.SIGINT, _end)
    from robust_rlhf_jax import cli

    signal.signal(signal.SIGINT, before)
    cli.main()


def _end(number, frame) -> None:
    os.write(2, b"robust-rlhf: stopped.\n")
    sys.stdout.flush()
    os._exit(130)


if __name__ == "__main__":
    main()
