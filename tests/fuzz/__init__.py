"""Hostile input, built by hypothesis in every run of the tests, and by a coverage-guided fuzzer on demand (run.py)."""
