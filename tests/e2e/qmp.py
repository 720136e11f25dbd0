#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""qmp.py SOCKET COMMAND [ARGUMENTS]...: QMP commands, each with its arguments as JSON ({} for none).
Prints what each returns, text as it is; exit 1 at the first error."""
import json
import socket
import sys


def ask(stream, command, arguments):
    stream.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
    stream.flush()
    for line in stream:
        answer = json.loads(line)
        if 'return' in answer:
            return answer['return']
        if 'error' in answer:
            sys.exit(f'{command}: {answer["error"]["desc"]}')
    sys.exit(f'{command}: the monitor went away')


def main():
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(sys.argv[1])
        stream = sock.makefile('rw', encoding='utf-8')
        stream.readline()
        ask(stream, 'qmp_capabilities', {})
        for command, arguments in zip(sys.argv[2::2], sys.argv[3::2]):
            answer = ask(stream, command, json.loads(arguments))
            print(answer if isinstance(answer, str) else json.dumps(answer))


main()
