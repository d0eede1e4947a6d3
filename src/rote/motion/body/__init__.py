"""The body in motion: kinematics, contact, balance, the path of the base, and a physics preview."""
