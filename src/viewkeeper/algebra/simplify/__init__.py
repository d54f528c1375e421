"""The optimizer of changes: laws, facts, and what can be proved from them."""
