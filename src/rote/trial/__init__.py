"""First contact with a robot: guided steps, what they measured, and what it says of our facts."""
