"""`minigts netlab`: netlab's labs on hosts of minigts. netlab starts `containerlab`, `docker` and `sudo ip netns`; here
these words are programs of minigts, which do what netlab asks of them in a lab, and nothing else on this machine."""
