"""Connections to robots: one package per wire, and modules that the wires share.

`link` has the base classes, `wires` the table of wires, `base_client` and `services_client` the
base classes of the clients.
"""
