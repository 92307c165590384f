"""coplay inside other programs."""
