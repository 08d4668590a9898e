"""Types into a program on a real terminal and writes down what passes, both directions in order.

terminal.py LOG STEPS PROGRAM ARGUMENTS...: STEPS is JSON, a list of [text to wait for, text to type].
"""
import json, os, pty, select, struct, sys, time

log = open(sys.argv[1], "wb")
steps = json.loads(sys.argv[2])


def note(kind, data):
    log.write(kind + struct.pack(">I", len(data)) + data)


pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
seen = b""
deadline = time.monotonic() + 20
while True:
    if steps and steps[0][0].encode() in seen:
        # Output that follows the awaited text belongs before the answer.
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if not ready:
            data = steps.pop(0)[1].encode()
            seen = b""
            note(b"c", data)
            os.write(terminal, data)
            continue
    ready, _, _ = select.select([terminal], [], [], 0.2)
    if ready:
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        note(b"t", data)
        seen += data
    elif time.monotonic() > deadline:
        sys.exit("nothing more came; still to type: %r; seen: %r" % (steps, seen))
log.close()
sys.exit(1 if steps else 0)
