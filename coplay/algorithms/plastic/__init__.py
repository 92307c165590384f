"""PLASTIC-Policy: a library of known partners with their best responses, and Bayes among them."""
