# A process that a rank leaves in the background neither keeps the rank running nor outlives it.
sleep 1000 >/dev/null 2>&1 &
(setsid sleep 1000 >/dev/null 2>&1 &)
exit 0
