# Installs a Debian package and starts nothing of it. Argument: the package.
set -eu
export DEBIAN_FRONTEND=noninteractive

# Packages ask this file whether they may start their services.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

apt() {
    apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120 "$@"
}
install() {
    apt install -y --no-install-recommends "$1"
}

# What the machine knows of packages may be out of date, or nothing at all.
install "$1" || { apt update && install "$1"; }
