"""Bridges to other programs: Foxglove, ROS 2, and agents by MCP; they are independent."""
