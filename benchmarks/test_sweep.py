"""1,024 cells through the sweep's own program beside as many jitted calls, each waited for."""

import jax
from sweep_cells import SIZE, as_in_a_sweep, batches, cores, in_processes, limits, share_of_data
from sweep_cells import measure as measure_cells

BATCH, CALLS = "the sweep's program", "calls one by one"
VMAPPED = ("vmap, 8 lanes", "vmap, 24 lanes")


def test_sweep(benchmark, measure, capsys, small):
    """The sweep's program takes every cell; of each ε the others take 16 or 24, scaled to all.

    On a processor it runs once more in a process with a device per core, as `robust-rlhf sweep` does: that is its time.
    """
    cells, vmapped_ways = (64, VMAPPED[:1]) if small else (1024, VMAPPED)
    first = next(batches(cells))
    measure(
        as_in_a_sweep,
        *first,
        what=f"{cells:,} cells of `uniform_coverage`, 8 ε",
        size=SIZE,
        work=(len(first[0]), "cells"),
        rounds=1,
    )
    del first
    found = measure_cells([BATCH, CALLS, *vmapped_ways], cells)
    if jax.default_backend() == "cpu":
        found[BATCH] = in_processes(cells, cores(), halves=1)
    facts = limits(found[BATCH], found[CALLS], share_of_data())
    per_cell = {way: wall / count for way, (count, wall, _) in found.items()}
    ours, theirs = (cells * per_cell[way] for way in (BATCH, CALLS))
    vmapped = {way: 1e3 * found[way][2] / found[way][0] for way in vmapped_ways}
    note = (
        f"A cell takes {facts['processor_ms_per_cell']:.1f} ms of processor time in the batch and "
        f"{facts['beside_processor_ms_per_cell']:.1f} in a call, which already uses {facts['cores_used_by_calls']:.2f} "
        f"of {facts['cores']} cores: on this processor a batch can be at most {facts['ratio_limit']:.1f} times as fast "
        f"as the calls. Of a call {facts['data_share']:.0%} grows with the pairs: were the rest free, the roof would "
        f"be {facts['roof']:.1f} times. Vmapped lanes wait for the slowest: processor time per cell "
        + " and ".join(f"{milliseconds:.1f} ms ({way})" for way, milliseconds in vmapped.items())
        + "."
    )
    benchmark.extra_info.update(
        beside=f"a call per cell, {found[CALLS][0]:.0f} of them scaled",
        ours_median_s=ours,
        ours_min_s=ours,
        beside_median_s=theirs,
        beside_min_s=theirs,
        ratio_median=theirs / ours,
        ratio_min=theirs / ours,
        throughput=cells / ours,
        note=note,
        **facts,
        vmapped_processor_ms_per_cell=vmapped,
    )
    with capsys.disabled():
        print(f"\n{cells:,} cells: {theirs / ours:.2f} times as fast as calls one by one. {note}")
