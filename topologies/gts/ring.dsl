// What GTS took of Groovy: variables, loops that come to the same each time, and texts put together.
type Ring {
  def sites = ["AMS", "BRA", "MIL", "LJU"]
  def n = sites.size()

  description = "a ring of ${n} sites"

  for (i in 0..<n) {
    host {
      id = "h${i + 1}"
      location = sites[i]
      port { id = "east" }
      port { id = "west" }
    }
    link { id = "l${i + 1}" capacity = 100 port { id = "src" } port { id = "dst" } }
  }
  (1..n).each { i ->
    adjacency "h${i}.east", "l${i}.src"
    adjacency "h${i % n + 1}.west", "l${i}.dst"
  }
}
