"""Who may use the page: tokens, roles, clients and certificates."""
