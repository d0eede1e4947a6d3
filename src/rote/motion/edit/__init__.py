"""Edits of a track: functions from track to track, and the table of all of them."""
