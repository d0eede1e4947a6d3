"""The API people program against."""
