"""What the routes call: the robot's activities, takes, shows, agents and the stage."""
