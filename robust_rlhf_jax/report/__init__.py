"""One HTML page from a folder of results."""
