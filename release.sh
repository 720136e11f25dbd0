#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# release.sh [OUT_DIR]: makes uniscope-VERSION.tar.gz of the commit that is checked out. uniscope-VERSION.txt beside
# it names commit and checksum, and is signed off in the name that git has. If git's user.signingkey is set, it is
# also signed by OpenPGP. The same commit gives the same bytes.
set -eu
cd "$(dirname "$0")"
out=${1:-.}
die() {
	echo "release.sh: $*" >&2
	exit 1
}
version=$(sed -n "s/^  version: '\(.*\)',$/\1/p" meson.build)
echo "$version" | grep -qxE '[0-9]+\.[0-9]+\.[0-9]+' || die "meson.build: '$version' is no semantic version"
[ -z "$(git status --porcelain)" ] || die 'there are changes that are not committed'
head=$(sed -n 's/^## \([^ ]*\).*/\1/p' CHANGELOG.md | head -1)
[ "$head" = "$version" ] || die "CHANGELOG.md begins with '$head', meson.build says $version"
debian=$(sed -n '1s/^uniscope (\(.*\)) .*/\1/p' debian/changelog)
[ "$debian" = "$version" ] || die "debian/changelog begins with '$debian', meson.build says $version"
who=$(git config user.name) && mail=$(git config user.email) || die 'git has no user.name and user.email to sign off with'
mkdir -p "$out"
archive=$out/uniscope-$version.tar.gz
git archive --format=tar --prefix="uniscope-$version/" HEAD | gzip -9n >"$archive.new"
mv "$archive.new" "$archive"
cat >"$out/uniscope-$version.txt" <<END
uniscope $version
Commit: $(git rev-parse HEAD)
SHA-256: $(sha256sum "$archive" | cut -d' ' -f1)  uniscope-$version.tar.gz
Signed-off-by: $who <$mail>
END
key=$(git config user.signingkey || true)
[ -z "$key" ] || gpg --batch --yes --local-user "$key" --armor --detach-sign "$out/uniscope-$version.txt"
cat "$out/uniscope-$version.txt"
