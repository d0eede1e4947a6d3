"""Pictures of motions: curves, stick figures and the band that several takes fill."""
