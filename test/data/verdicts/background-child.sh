# What a rank leaves in the background neither holds it nor outlives it.
sleep 1000 >/dev/null 2>&1 &
(setsid sleep 1000 >/dev/null 2>&1 &)
exit 0
