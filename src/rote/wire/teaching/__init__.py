"""UDP teaching frames: codec, fields, states, and explanations of single frames."""
