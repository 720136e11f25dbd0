# SPDX-License-Identifier: BSD-2-Clause
# Sourced. few_devices DIR: mounts there the devices that any container or chroot has, and no others.
few_devices() {
	mount -t tmpfs -o mode=755 none "$1" && mkdir "$1/shm" "$1/pts" && chmod 1777 "$1/shm" || return 1
	for f in null zero full random urandom tty; do
		: >"$1/$f" && mount --bind "/dev/$f" "$1/$f" || return 1
	done
	mount -t devpts -o newinstance,ptmxmode=666,mode=620 none "$1/pts" && ln -s pts/ptmx "$1/ptmx" &&
		ln -s /proc/self/fd "$1/fd"
}
