"""Programs for those who work on coplay; the wheel does not hold them."""
