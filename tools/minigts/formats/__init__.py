"""Other testbeds' and tools' files: GTS, containerlab, netlab, GraphML are read; they, dot and mermaid are written.

Each reader makes one neutral model, `network.Network`. It becomes a document of the topology language, with the lines
of the original file. The meaning of a topology is in `topology`.
"""
