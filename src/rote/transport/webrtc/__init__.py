"""The WebRTC data channel of the G1 Air."""
