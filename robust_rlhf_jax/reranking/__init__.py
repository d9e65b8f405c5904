"""The command `best-of-n`: the best of several answers to each prompt, by the preferences of a file."""
