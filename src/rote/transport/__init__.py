"""Connections to robots: one folder per wire, and what the wires share.

`link` has the base classes, `wires` the table of wires, `base_client` and `services_client` what
clients of several wires have in common.
"""
