"""Few keyframes for many samples: search, proposals and edits."""
