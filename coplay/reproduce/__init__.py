"""Questions with their experiments: which commands answer them, and what their results come to."""
