"""One HTML page from a folder of results: `robust-rlhf report`."""

from .command import write_report
from .load import Result, load_results
from .page import render_page

__all__ = ["Result", "load_results", "render_page", "write_report"]
