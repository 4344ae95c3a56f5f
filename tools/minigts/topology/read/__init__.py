"""A topology's file as it is read: its model, what it declares, and what a plan is made of."""
