#!/bin/sh
case $(hostname) in
  staff*) ip route replace default via 10.30.10.1 ;;
  student*) ip route replace default via 10.30.20.1 ;;
esac
