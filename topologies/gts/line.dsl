// GTS, version 1: hosts, links and adjacencies. Where a link has no delay, it has that between its sites.
type Line {
  description = "three sites in a row"

  host {
    id="h1"
    location="AMS"
    port { id="port11" }
  }
  link { id="l1" port {id="src"} port {id="dst"} }
  adjacency h1.port11, l1.src

  host {
    id="h2"
    location="BRA"
    port { id="port21" }
    port { id="port22" }
  }
  host {
    id="h3"
    location="PRG"
    port { id="port31" }
  }
  link { id="l2" port {id="src"} port {id="dst"} }
  adjacency h2.port21, l1.dst
  adjacency h2.port22, l2.src
  adjacency h3.port31, l2.dst
}
