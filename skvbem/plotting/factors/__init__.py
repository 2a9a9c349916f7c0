"""Pictures of factor analyses."""
