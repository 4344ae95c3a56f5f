"""A campaign in virtual time as many jobs, each with a lab of its own, on the workers of a Dask cluster.

`jobs` splits it, `worker` does one, `engine` has them done, `gathering` puts what comes of them into results folders.
"""
