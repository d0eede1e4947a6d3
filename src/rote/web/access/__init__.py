"""Access control: tokens, roles, clients and certificates."""
