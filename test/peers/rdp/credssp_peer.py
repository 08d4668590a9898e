"""CredSSP as Windows speaks it: SPNEGO around NTLM with signed mechanisms, by MIT's GSS-API and gss-ntlmssp.

client: reads {port, user, domain, password, another} as JSON (another: bound to a certificate that is not the server's); prints {result: 'in' | 'refused' | 'altered', status?}.
server: reads {cert, key} (files) as JSON; prints its port, then {user, domain, password} of the first client, or
{error}. Who may come in stands in the file of NTLM_USER_FILE.
target: as server, with Kerberos by the keytab of KRB5_KTNAME, for any number of clients; {cert, key, onward}: the port of
a server with TLS that has what follows, or null.
"""
import hashlib
import json
import os
import select
import socket
import ssl
import sys
import threading

import gssapi
from gssapi.raw import ChannelBindings, acquire_cred_with_password, inquire_sec_context_by_oid, set_neg_mechs

NTLM = gssapi.OID.from_int_seq('1.3.6.1.4.1.311.2.2.10')
KERBEROS = gssapi.OID.from_int_seq('1.2.840.113554.1.2.2')
SPNEGO = gssapi.OID.from_int_seq('1.3.6.1.5.5.2')
SESSION_KEY = gssapi.OID.from_int_seq('1.2.840.113554.1.2.2.5.5')


def der(tag, *parts):
    body = b''.join(parts)
    size = len(body)
    if size < 128:
        return bytes([tag, size]) + body
    digits = size.to_bytes((size.bit_length() + 7) // 8, 'big')
    return bytes([tag, 0x80 | len(digits)]) + digits + body


def read(data, at=0):
    """Tag, value and the place behind it."""
    tag, size, at = data[at], data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        size, at = int.from_bytes(data[at:at + count], 'big'), at + count
    return tag, data[at:at + size], at + size


def inside(data, *path):
    """The value at the end of a path of tags."""
    for wanted in path:
        at, value = 0, None
        while at < len(data) and value is None:
            tag, body, at = read(data, at)
            if tag == wanted:
                value = body
        if value is None:
            return None
        data = value
    return data


def exact(stream, size):
    data = b''
    while len(data) < size:
        piece = stream.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def receive(stream):
    head = exact(stream, 2)
    size = head[1]
    if size & 0x80:
        size = int.from_bytes(exact(stream, size & 0x7F), 'big')
    return exact(stream, size)


def request(*fields):
    return der(0x30, der(0xA0, der(2, b'\x06')), *fields)


def octets(number, data):
    return der(0xA0 + number, der(4, data))


def nego(token):
    return der(0xA1, der(0x30, der(0x30, octets(0, token))))


def binding(direction, nonce, key):
    return hashlib.sha256(f'CredSSP {direction} Binding Hash\0'.encode() + nonce + key).digest()


def public_key(certificate):
    """The value of the BIT STRING in the SubjectPublicKeyInfo."""
    body, at, values = inside(certificate, 0x30, 0x30), 0, []
    while at < len(body):
        tag, value, at = read(body, at)
        if tag != 0xA0:
            values.append(value)
    return inside(values[5], 3)[1:]


def channel_bindings(certificate):
    """tls-server-end-point (RFC 5929) of a certificate that is signed with SHA-256."""
    return ChannelBindings(application_data=b'tls-server-end-point:' + hashlib.sha256(certificate).digest())


def connect(port):
    stream = socket.create_connection(('127.0.0.1', port), 10)
    # A connection request for TLS, CredSSP and CredSSP with early authorization, as in mstsc.
    stream.sendall(bytes.fromhex('030000130ee00000000000010008000b000000'))
    exact(stream, exact(stream, 4)[3] - 4)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(stream)


def client(login):
    user, domain, password = login['user'], login['domain'], login['password']
    stream = connect(login['port'])
    certificate = stream.getpeercert(True)
    key = public_key(certificate)
    name = gssapi.Name(f'{domain}\\{user}' if domain else user, gssapi.NameType.user)
    creds = acquire_cred_with_password(name, password.encode(), usage='initiate', mechs=[SPNEGO, NTLM]).creds
    set_neg_mechs(creds, [NTLM])
    flag = gssapi.RequirementFlag
    session = gssapi.SecurityContext(
        name=gssapi.Name('TERMSRV@bastion', gssapi.NameType.hostbased_service),
        creds=gssapi.Credentials(creds),
        mech=SPNEGO,
        usage='initiate',
        flags=flag.mutual_authentication | flag.confidentiality | flag.integrity,
        channel_bindings=channel_bindings(bytes(reversed(certificate)) if login['another'] else certificate),
    )
    token = session.step()
    while token:
        stream.sendall(request(nego(token)))
        reply = receive(stream)
        status = inside(reply, 0xA4, 2)
        if status:
            return {'result': 'refused', 'status': int.from_bytes(status[-4:], 'big')}
        token = session.step(inside(reply, 0xA1, 0x30, 0x30, 0xA0, 4))
    nonce = os.urandom(32)
    sealed = session.wrap(binding('Client-To-Server', nonce, key), True).message
    stream.sendall(request(octets(3, sealed), octets(5, nonce)))
    reply = receive(stream)
    status = inside(reply, 0xA4, 2)
    if status:
        return {'result': 'refused', 'status': int.from_bytes(status[-4:], 'big')}
    if session.unwrap(inside(reply, 0xA3, 4)).message != binding('Server-To-Client', nonce, key):
        return {'result': 'altered'}
    texts = [octets(number, text.encode('utf-16-le')) for number, text in enumerate((domain, user, password))]
    credentials = der(0x30, der(0xA0, der(2, b'\x01')), octets(1, der(0x30, *texts)))
    stream.sendall(request(octets(2, session.wrap(credentials, True).message)))
    stream.unwrap().close()
    return {'result': 'in'}



def accept_tls(listener, files):
    connection, _ = listener.accept()
    exact(connection, exact(connection, 4)[3] - 4)
    # A connection confirm that selects CredSSP.
    connection.sendall(bytes.fromhex('030000130ed000001234000200080002000000'))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files['cert'], files['key'])
    return context.wrap_socket(connection, server_side=True)


def credentials_of(stream, files, mechanisms):
    with open(files['cert']) as pem:
        certificate = ssl.PEM_cert_to_DER_cert(pem.read())
    key = public_key(certificate)
    session = gssapi.SecurityContext(
        creds=gssapi.Credentials(usage='accept', mechs=mechanisms),
        usage='accept',
        channel_bindings=channel_bindings(certificate),
    )
    message = receive(stream)
    # Bytes of the client's first token that are encrypted: its ticket and the proof of it.
    ticket = inside(message, 0xA1, 0x30, 0x30, 0xA0, 4)[-64:]
    while not session.complete:
        try:
            token = session.step(inside(message, 0xA1, 0x30, 0x30, 0xA0, 4))
        except gssapi.exceptions.GSSError as error:
            if error.token:
                stream.sendall(request(nego(error.token)))
            raise
        last, message = message, None
        if token:
            stream.sendall(request(nego(token)))
        if not session.complete or inside(last, 0xA3, 4) is None:
            message = receive(stream)
    message = message or last
    nonce = inside(message, 0xA5, 4)
    if session.unwrap(inside(message, 0xA3, 4)).message != binding('Client-To-Server', nonce, key):
        return {'error': 'another key'}
    stream.sendall(request(octets(3, session.wrap(binding('Server-To-Client', nonce, key), True).message)))
    sealed = session.unwrap(inside(receive(stream), 0xA2, 4))
    if not sealed.encrypted:
        return {'error': 'not sealed'}
    parts = inside(inside(sealed.message, 0x30, 0xA1, 4), 0x30)
    domain, user, password = (inside(parts, 0xA0 + number, 4).decode('utf-16-le') for number in range(3))
    found = {'domain': domain, 'user': user, 'password': password}
    if KERBEROS in mechanisms:
        found['principal'] = str(session.initiator_name)
        # GSS_C_INQ_SSPI_SESSION_KEY.
        found['keys'] = [part.hex() for part in inquire_sec_context_by_oid(session, SESSION_KEY)[:1]]
        found['ticket'] = ticket.hex()
    return found


def server(files):
    listener = socket.create_server(('127.0.0.1', 0))
    print(json.dumps(listener.getsockname()[1]), flush=True)
    return credentials_of(accept_tls(listener, files), files, [SPNEGO, NTLM])


def pump(stream, port):
    onward = socket.create_connection(('127.0.0.1', port), 10)
    onward.sendall(bytes.fromhex('030000130ee000000000000100080001000000'))
    exact(onward, exact(onward, 4)[3] - 4)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    onward = context.wrap_socket(onward)
    while True:
        ready = [one for one in (stream, onward) if one.pending()]
        for source in ready or select.select([stream, onward], [], [])[0]:
            data = source.recv(65536)
            if not data:
                return
            (onward if source is stream else stream).sendall(data)


def serve(stream, files):
    try:
        found = credentials_of(stream, files, [KERBEROS, SPNEGO])
    except Exception as error:
        found = {'error': str(error)}
    print(json.dumps(found), flush=True)
    try:
        if 'error' not in found and files['onward']:
            pump(stream, files['onward'])
        stream.close()
    except OSError:
        pass


def target(files):
    listener = socket.create_server(('127.0.0.1', 0))
    print(json.dumps(listener.getsockname()[1]), flush=True)
    while True:
        try:
            stream = accept_tls(listener, files)
        except (OSError, EOFError):
            continue
        threading.Thread(target=serve, args=(stream, files), daemon=True).start()


modes = {'client': client, 'server': server, 'target': target}
print(json.dumps(modes[sys.argv[1]](json.load(sys.stdin))))
