"""Other people's worlds: Foxglove, ROS 2 and agents that speak MCP, each beside the others."""
