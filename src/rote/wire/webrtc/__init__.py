"""Signalling, session descriptions and data-channel messages of WebRTC."""
