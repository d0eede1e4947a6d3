"""A robot's services, over a data channel or DDS: the connection, and a client made of parts.

`reports` makes states of what the robot publishes; `actions`, `teaching`, `stops`, `modes` and
`audio` carry out commands by requests.
"""
