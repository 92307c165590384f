"""HOP: beliefs about the goals of others, models of others given their goals, and planning."""
