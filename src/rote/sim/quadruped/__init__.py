"""A simulated A1 or Go1 that speaks their UDP protocols."""
