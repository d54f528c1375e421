"""Transactions over several tables: statements, constraints, immediate views, and the journal."""
