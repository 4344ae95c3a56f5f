"""What a file says of a link's two ends and of the segment between them, a file for each key of it."""
