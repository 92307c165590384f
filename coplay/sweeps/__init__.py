"""Sweeps: many runs that differ in some fields, on this machine or on a Ray cluster."""
