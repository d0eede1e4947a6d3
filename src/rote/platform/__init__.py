"""This computer: paths, files, console, clocks, event loop, real-time threads and ports."""
