# What a rank leaves in the background neither holds it nor outlives it.
sleep 100 >/dev/null 2>&1 &
(setsid sleep 100 >/dev/null 2>&1 &)
exit 0
