"""Several robots as one: a conductor, an agent beside each robot, and a bus between them."""
