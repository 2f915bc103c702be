# Runs a server until it ends. Each line read names a signal to send to it; when the pipe closes,
# whoever started us is gone: then the server is stopped and its folder removed.
# Arguments: folder, signal for that case, program, its arguments.
folder=$1
signal=$2
shift 2
exec 3<&0 </dev/null

"$@" 3<&- &
server=$!

(
    while read -r order <&3; do kill -s "$order" "$server"; done
    trap '' TERM
    kill -s "$signal" "$server"
    exit 9
) 2>/dev/null &
watcher=$!

wait "$server"
code=$?
kill "$watcher" 2>/dev/null
wait "$watcher"
if [ $? -eq 9 ]; then cd / && rm -rf "$folder"; fi
exit "$code"
