"""Runs a program on a pseudo-terminal of its own, for test/peers/terminal.ts.

Arguments: columns, lines, program, arguments. What the program writes goes to stdout as it comes. stdin takes one
JSON object a line: {"send": base64}, {"resize": [columns, lines]}, {"signal": number}. Ends with the program's exit
code, or with 128 + signal.
"""
import base64
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios


def resize(terminal, columns, lines):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def main():
    columns, lines = int(sys.argv[1]), int(sys.argv[2])
    pid, terminal = pty.fork()
    if pid == 0:
        resize(0, columns, lines)
        os.execvp(sys.argv[3], sys.argv[3:])
    commands = b""
    readers = [terminal, 0]
    while True:
        ready, _, _ = select.select(readers, [], [])
        if terminal in ready:
            try:
                data = os.read(terminal, 65536)
            except OSError:
                data = b""
            if not data:
                break
            while data:
                data = data[os.write(1, data):]
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                # The test has ended: the program loses its terminal, for which the kernel sends it SIGHUP. A shell
                # that is just about to read a line may miss the signal, but not the end of its input.
                break
            commands += data
            while b"\n" in commands:
                line, commands = commands.split(b"\n", 1)
                command = json.loads(line)
                if "send" in command:
                    data = base64.b64decode(command["send"])
                    while data:
                        data = data[os.write(terminal, data):]
                if "resize" in command:
                    resize(terminal, *command["resize"])
                    os.kill(pid, signal.SIGWINCH)
                if "signal" in command:
                    os.kill(pid, command["signal"])
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


main()
