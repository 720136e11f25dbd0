# SPDX-License-Identifier: BSD-2-Clause
# For the scripts that chroot.sh runs: results as TAP, commands in the chroot. Sourced.
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT INT TERM
n=0

# check DESCRIPTION COMMAND...: what it printed follows if it fails.
check() {
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$T/said" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		tail -25 "$T/said" | sed 's/^/# /'
	fi
}

# inside USER COMMAND...: in the chroot, with nothing of this environment.
inside() {
	user=$1
	shift
	home=/srv/$user
	[ "$user" != root ] || home=/root
	chroot --userspec="$user" "$ROOT" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		HOME="$home" USER="$user" LC_ALL=C "$@" </dev/null
}

# tree SOURCE FOLDER USER: what a clone has, and what was changed since, at FOLDER of the chroot.
tree() {
	mkdir -p "$ROOT$2"
	git -c safe.directory='*' -C "$1" ls-files -co --exclude-standard | while read -r f; do
		[ ! -f "$1/$f" ] || printf '%s\n' "$f"
	done >"$T/files"
	tar -C "$1" -cf - -T "$T/files" | tar -C "$ROOT$2" --no-same-owner -xf - &&
		chroot "$ROOT" chown -R "$3" "$2"
}

# origin SOURCE: /srv/uniscope.git of the chroot, which git has: one commit of what a clone of SOURCE has, and what was changed since.
origin() {
	inside root sh -c 'apt-get update && apt-get install -y --no-install-recommends git &&
		git init -q --bare -b main /srv/uniscope.git && git config --system safe.directory "*"' &&
		GIT_DIR=$ROOT/srv/uniscope.git GIT_WORK_TREE=$1 GIT_INDEX_FILE=$T/index git -C "$1" add -A &&
		GIT_DIR=$ROOT/srv/uniscope.git GIT_WORK_TREE=$1 GIT_INDEX_FILE=$T/index git -C "$1" -c user.name=fresh \
			-c user.email=fresh@localhost commit -q -m 'the tree'
}
