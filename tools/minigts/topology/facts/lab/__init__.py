"""What a file says of a lab as a whole, a file for each key of it."""
