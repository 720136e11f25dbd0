# SPDX-License-Identifier: BSD-2-Clause
# bash completion for uniscope: asks the program itself, so that it never goes stale.
_uniscope() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local cmd=${COMP_WORDS[1]} prog=${COMP_WORDS[0]} name arg words
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		mapfile -t COMPREPLY < <(compgen -W "$("$prog" __complete 2>/dev/null) --help --version" -- "$cur")
		return
	fi
	if [[ $cmd == trace || $cmd == uk-trace ]]; then
		if ((COMP_CWORD == 2)); then
			mapfile -t COMPREPLY < <(compgen -W "$("$prog" __complete "$cmd" 2>/dev/null) --help" -- "$cur")
			return
		fi
		cmd+=" ${COMP_WORDS[2]}"
	fi
	while IFS=$'\t' read -r name arg words; do
		if [[ $prev == "$name" && -n $arg ]]; then
			if [[ $words == FILE || -z $words ]]; then
				mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			else
				mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
			fi
			return
		fi
	done < <("$prog" __complete $cmd 2>/dev/null)
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$prog" __complete $cmd 2>/dev/null | cut -f1) --help" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -o filenames -F _uniscope uniscope
