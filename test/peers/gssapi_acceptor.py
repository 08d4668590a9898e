"""Takes a ticket by MIT's GSS-API, and messages after it: a token in base64 on each line, each way."""
import base64
import sys

import gssapi


def hear():
    return base64.b64decode(sys.stdin.readline())


def say(token):
    print(base64.b64encode(token).decode(), flush=True)


context = gssapi.SecurityContext(creds=gssapi.Credentials(usage='accept'), usage='accept')
say(context.step(hear()))
assert context.complete
say(str(context.initiator_name).encode())
for turn in range(3):
    message = context.unwrap(hear())
    assert message.encrypted
    say(context.wrap(message.message[::-1], True).message)
context.verify_signature(b'session and user', hear())
say(context.get_signature(b'session and user'))
