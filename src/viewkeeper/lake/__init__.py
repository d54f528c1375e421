"""The lake: the only part that knows Delta: versions, changes, and the tables that hold views."""
