"""What was found, for people and programs."""
