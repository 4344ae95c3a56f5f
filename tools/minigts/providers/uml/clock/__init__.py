"""The clock of a lab in virtual time: its process, and what it is asked."""
