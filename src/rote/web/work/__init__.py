"""Work that takes long, in child processes, so that the loop that stops the robot stays free."""
