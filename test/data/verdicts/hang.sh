# No rank ever ends.
exec sleep 1000
