"""Audits: is every seat treated alike, does every declared part act?
Not here: how results are shown."""
