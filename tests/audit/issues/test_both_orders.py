"""The same two options with opposite results."""

from issue_batches import found_in


def test_the_fault_is_found_and_explained(tmp_path):
    found_in(tmp_path, "both_orders", "prefers the other one")
