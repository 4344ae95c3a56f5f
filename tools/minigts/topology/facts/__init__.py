"""What a topology may say, a file for each fact."""
