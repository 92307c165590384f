"""Other places that the rows of a run go to, by `--log`."""
