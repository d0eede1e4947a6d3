"""rote a1: the A1 and Go1 quadrupeds from the command line."""
