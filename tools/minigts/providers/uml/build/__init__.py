"""What hosts of User-Mode Linux start from: built or fetched once, kept, and taken elsewhere in one file."""
