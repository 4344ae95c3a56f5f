// GTS, versions 2 and 3: OpenFlow switches with a controller's port, processors, rates of ports and links.
OneController {
  id = "OneController"
  description = "two hosts on two switches, which a third host controls"

  host { id="H1" location="AMS" cpuSpeed="2" port { id="eth1" lineRate="1gbit" } }
  host { id="H2" location="LJU" port { id="eth1" } }
  host { id="controller" location="AMS" port { id="eth1" } port { id="eth2" } }

  ofx {
    id="ofxAMS"
    location="AMS"
    fabricIPv4="10.10.10.1"
    fabricSubnetMaskv4="255.255.255.0"
    controllerPort="6633"
    controllerIPv4="10.10.10.10"
    port { id="p1" }
    port { id="p2" }
    port { id="pControl" mode="CONTROL" }
  }
  ofx {
    id="ofxLJU"
    location="LJU"
    fabricIPv4="10.10.11.1"
    fabricSubnetMaskv4="255.255.255.0"
    controllerPort="6633"
    controllerIPv4="10.10.11.10"
    port { id="p1" }
    port { id="p2" }
    port { id="pControl" mode="CONTROL" }
  }

  link { id="l1" capacity=1000 port { id="src" } port { id="dst" } }
  link { id="l2" capacity=100 port { id="src" } port { id="dst" } }
  link { id="l3" port { id="src" } port { id="dst" } }
  link { id="lc1" port { id="src" } port { id="dst" } }
  link { id="lc2" port { id="src" } port { id="dst" } }

  adjacency H1.eth1, l1.src
  adjacency ofxAMS.p1, l1.dst
  adjacency ofxAMS.p2, l2.src
  adjacency ofxLJU.p1, l2.dst
  adjacency H2.eth1, l3.src
  adjacency ofxLJU.p2, l3.dst
  adjacency controller.eth1, lc1.src
  adjacency ofxAMS.pControl, lc1.dst
  adjacency controller.eth2, lc2.src
  adjacency ofxLJU.pControl, lc2.dst
}
