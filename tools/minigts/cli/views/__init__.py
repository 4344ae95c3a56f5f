"""What is drawn on the terminal: tables, plans, labs, and what was measured."""
