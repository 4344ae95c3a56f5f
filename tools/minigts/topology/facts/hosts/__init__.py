"""What a file says of a host, a file for each key of it."""
