"""DDS messages as CDR."""
