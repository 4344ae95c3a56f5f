"""Other testbeds' and tools' files: GTS, containerlab, netlab, GraphML are read; they, dot and mermaid are written.

All meet in one neutral model, `network.Network`. It becomes a document of our topology language, with the lines of the
file it was read from. What a topology means is not known here, but in `topology`.
"""
