#!/bin/sh
# A hook of txfs: lets nobody remove a migration of a database, and asks a person
# about any other change to one. docs/policy.md says what the lines are.
while read -r line; do
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
    *'"effect":"remove"'*) verdict="deny" ;;
    *'"effect":"content"'* | *'"effect":"attributes"'*) verdict="ask" ;;
    *'"effect":"make"'*) verdict="allow" ;;
    *) verdict="ask" ;;
  esac
  echo "{\"id\":$id,\"verdict\":\"$verdict\"}"
done
