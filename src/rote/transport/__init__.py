"""Connections to robots: one package per wire, and modules that the wires share.

`link` has the base classes, `wires` the table of wires, `base_client` the base class of the
clients. `services` is what the wires WebRTC and DDS have in common.
"""
