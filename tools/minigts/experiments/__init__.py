"""Experiments: what is measured, in which order, with which tool, and what the samples say.

`model` and `load` read a file, `matrix` orders its samples, `tools` and `parsers` speak to netperf, iperf3 and
ping, `run` executes, `store` keeps the raw outputs, `derive` makes tables of them,
`claims` and `comparisons` find what a claim speaks of; minigts.judge decides.
"""
