"""The version, in one place. Nothing is imported: `coplay --version` answers at once."""

VERSION = "0.3.0"
