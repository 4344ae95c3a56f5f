"""`minigts bisect`: which commit of a git repository changed what a lab shows.

`history` is git's own bisection, in a repository beside the user's. `question` is what is asked of each kernel: an
experiment's claims, or a test under several seeds. `search` builds and asks, commit by commit; `folder` keeps each
answer, and `page` writes them down. Kernels are built by `providers`, and labs run by `session` and `explore`.
"""
