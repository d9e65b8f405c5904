"""Processes of the real command that need not import anything: forked from one that has.

Reads lines of JSON, [arguments, file for the output]; prints for each the child's number, then how it ended: its
exit status, or minus the signal that ended it. The parent never runs anything of JAX's, so that it may fork.
"""

import json
import os
import sys

from robust_rlhf_jax import cli

__all__ = ["cli"]


def child(arguments, output) -> None:
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.argv = ["robust-rlhf", *arguments]
    status = 0
    try:
        cli.main()
    except SystemExit as end:
        status = int(end.code or 0)
    sys.stdout.flush()
    os._exit(status)


for line in sys.stdin:
    request = json.loads(line)
    process = os.fork()
    if not process:
        child(*request)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
