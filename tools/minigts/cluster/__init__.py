"""A campaign in virtual time as many jobs, each with a lab of its own, on the workers of a Dask cluster.

`jobs` splits it, `engine` is the cluster, `doing` has the jobs done, `worker` does one, on a `processor` of its own
where several are on this machine, `gathering` puts what comes of them into results folders.
"""
