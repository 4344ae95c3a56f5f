"""A campaign in virtual time is split into jobs, each with its own lab, for the workers of a Dask cluster.

`jobs` splits it, `engine` opens the cluster, `doing` hands jobs to workers, `worker` does one job, `processor` gives
each worker on this machine its own processor, `merge_results` writes the results into results folders. `shares` says
which jobs a process does that knows of no others, and `merge_shares` puts together what they have measured.
"""
