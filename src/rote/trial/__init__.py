"""First contact with a robot: guided steps, measurements, and a comparison with our facts."""
