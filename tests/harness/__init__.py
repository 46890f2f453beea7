"""The parts that several suites share. Imported by the suites that `tests/run` starts; needs nothing but Python."""
