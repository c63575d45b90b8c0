# Rank 1 gets SIGTERM from outside and dies of it.
[ "$RANK" = 0 ] && exec sleep 1000
kill -TERM $$
