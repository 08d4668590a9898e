"""Types into a program on a real terminal and writes down what passes, both directions in order.

typing.py LOG COLUMNS ROWS STEPS PROGRAM ARGUMENTS...: STEPS is JSON, a list of [text to wait for, text to type] or
[text to wait for, [columns, rows]] for a new size. The log: lines of JSON, [who, base64] or ["resize", [c, r]].
"""
import base64, fcntl, json, os, pty, select, signal, struct, sys, termios, time

log = open(sys.argv[1], "w")
steps = json.loads(sys.argv[4])


def note(who, data):
    log.write(json.dumps([who, base64.b64encode(data).decode()]) + "\n")


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


pid, terminal = pty.fork()
if pid == 0:
    resize(0, int(sys.argv[2]), int(sys.argv[3]))
    os.execvp(sys.argv[5], sys.argv[5:])
seen = b""
deadline = time.monotonic() + 30
while True:
    if steps and steps[0][0].encode() in seen:
        # Output that follows the awaited text belongs before the answer.
        ready, _, _ = select.select([terminal], [], [], 0.08)
        if not ready:
            step = steps.pop(0)[1]
            seen = b""
            if isinstance(step, list):
                log.write(json.dumps(["resize", step]) + "\n")
                resize(terminal, *step)
            else:
                note("client", step.encode())
                os.write(terminal, step.encode())
            continue
    ready, _, _ = select.select([terminal], [], [], 0.2)
    if ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        note("target", data)
        seen += data
    elif time.monotonic() > deadline:
        os.kill(pid, signal.SIGKILL)
        sys.exit("nothing more came; still to type: %r; seen: %r" % (steps, seen))
log.close()
sys.exit(1 if steps else 0)
