"""Measured speed, one file per claim: `python -m benchmarks [claim ...] [--json]`.

Every file has a `run` that returns rows of the table. What is compared takes turns in one run, and
medians over the rounds are compared, because another program on the machine slows both down.
"""
