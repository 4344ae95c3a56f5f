#!/bin/sh
# Task 1: runs on staff1, staff2, student1 and student2 when the lab comes up. Their default gateway is yours to set.
case $(hostname) in
  staff*) ;;
  student*) ;;
esac
