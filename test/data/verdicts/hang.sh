# No rank ever ends.
exec sleep 100
