"""Motions as arrays: record, edit, check, draw. Only the package `files`, and pictures, use the
disk.
"""
