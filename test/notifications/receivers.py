"""Receivers of notifications: an HTTPS server that checks signatures by Python's hmac, and aiosmtpd with STARTTLS.

receivers.py CERTIFICATE KEY SECRET WEBHOOK_PORT MAIL_PORT
prints one JSON object a line for all that comes. The path of a request is the status that it gets.
"""
import hashlib
import hmac
import http.server
import json
import ssl
import sys
import threading

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

certificate, key, secret = sys.argv[1:4]
webhook_port, mail_port = int(sys.argv[4]), int(sys.argv[5])


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Webhook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        seconds = self.headers["x-sallyport-timestamp"]
        mac = hmac.new(secret.encode(), seconds.encode() + b"." + body, hashlib.sha256)
        say(
            path=self.path,
            valid=hmac.compare_digest("v1=" + mac.hexdigest(), self.headers["x-sallyport-signature"]),
            event=self.headers["x-sallyport-event"],
            delivery=self.headers["x-sallyport-delivery"],
            headers=sorted(name.lower() for name in self.headers),
            body=json.loads(body),
        )
        status = int(self.path[1:])
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("location", "/200")
        self.send_header("content-length", "6")
        self.end_headers()
        self.wfile.write(b"canary")

    def log_message(self, *args):
        pass


class Mails:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused"):
            return "550 canary of the server"
        if address.startswith("later"):
            return "451 canary of the server"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        say(
            mail=envelope.content.decode(),
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            tls=session.ssl is not None,
            login=session.auth_data and session.auth_data.login.decode(),
        )
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=data.password == b"mail-password", handled=False, auth_data=data)


class Mailbox(Controller):
    def factory(self):
        return SMTP(
            self.handler,
            hostname="mail.lab.test",
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=authenticate,
        )


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
web = http.server.ThreadingHTTPServer(("127.0.0.1", webhook_port), Webhook)
web.socket = context.wrap_socket(web.socket, server_side=True)
threading.Thread(target=web.serve_forever, daemon=True).start()
Mailbox(Mails(), hostname="127.0.0.1", port=mail_port).start()
say(ready=True)
threading.Event().wait()
