"""HTTP and WebSocket routes: read the request, make one call, write the response."""
