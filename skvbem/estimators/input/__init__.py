"""Everything that reads a user's table: columns, categories, numbers, sequences, and the way back to the user."""
