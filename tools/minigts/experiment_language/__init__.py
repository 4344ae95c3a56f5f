"""What an experiment's file may say: measurements, claims and figures. Runs of it are in `experiments`."""
