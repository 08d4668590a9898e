"""Shows a ticket by MIT's GSS-API: argv is the service and the mechanism; lines of JSON go each way."""
import base64
import json
import sys

import gssapi

OIDS = {'kerberos': '1.2.840.113554.1.2.2', 'spnego': '1.3.6.1.5.5.2'}
name = gssapi.Name(sys.argv[1], gssapi.NameType.hostbased_service)
flags = [gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity]
context = gssapi.SecurityContext(
    name=name, mech=gssapi.OID.from_int_seq(OIDS[sys.argv[2]]), usage='initiate', flags=flags
)


def say(token):
    print(base64.b64encode(token).decode(), flush=True)


say(context.step())
context.step(base64.b64decode(sys.stdin.readline()))
assert context.complete
say(context.get_signature(b'session and user'))
