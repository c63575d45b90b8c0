# Rank 0 ends well, after it rank 1 fails: the script of the issue, with the order made certain.
. "$(dirname "$0")/order.sh"
after_rank_0
exit $((RANK * 3))
