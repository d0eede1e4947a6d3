"""The pendant: a web page that teaches a robot, and the API behind it."""
