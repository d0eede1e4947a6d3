"""The types of requests and responses."""
