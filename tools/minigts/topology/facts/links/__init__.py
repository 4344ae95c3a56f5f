"""What a link does to packets, a file for each key of it."""
