"""Networks that follow from a few numbers and a seed: an Internet of autonomous systems. Each is a network in the
neutral model of `formats`, which becomes a topology file. Shorthands of a topology, such as `clos:`, are in `topology`:
they draw nothing."""
