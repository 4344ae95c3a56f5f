"""The plan: its elements, how it is built, stored, printed and reseeded."""
