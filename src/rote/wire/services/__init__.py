"""Requests, replies and states of the robot's services, which WebRTC and DDS share."""
