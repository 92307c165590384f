"""The build of the documentation: `python -m tools.docs`."""
