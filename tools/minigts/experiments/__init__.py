"""Experiments: what is measured, in which order, with which tool, and what follows from the samples.

`campaign` takes experiments from their files to results: `model` and `load` read a file, `matrix` orders its samples,
`commands` starts the measuring tools, `run` executes, on a real lab through `stage` and `drops`, `store` keeps the
raw outputs, `derive` makes tables of them, `claims` and `comparisons` find what a claim speaks of; `judge`
decides. Nothing here prints.
"""
