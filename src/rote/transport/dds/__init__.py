"""DDS of the G1 EDU."""
