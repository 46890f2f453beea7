"""Conformance kit for Stepwarden's agents in any language. See `python -m kit --help` and ../README.md."""
