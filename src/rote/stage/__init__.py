"""Several robots in one show: conductor, agents, reports, and the show file."""
