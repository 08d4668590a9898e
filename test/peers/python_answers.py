"""Signs in with paramiko by password and then, or from the start, by answering questions; for test/peers/python.ts.

stdin: one JSON object {port, user, password, rounds, command}: rounds are the lists of answers, one for each round of
questions. stdout: {partial, prompts, code, stdout, stderr}, or {partial, prompts, error}.
"""
import json
import sys

import paramiko

task = json.load(sys.stdin)
result = {"partial": [], "prompts": []}
rounds = iter(task["rounds"])
transport = paramiko.Transport(("127.0.0.1", task["port"]))


def answer(title, instructions, prompts):
    result["prompts"].append([instructions, *[text for text, _echo in prompts]])
    return next(rounds)[: len(prompts)] if prompts else []


try:
    transport.start_client(timeout=10)
    if task.get("password") is not None:
        result["partial"] = transport.auth_password(task["user"], task["password"], fallback=False)
    if not transport.is_authenticated():
        transport.auth_interactive(task["user"], answer)
    channel = transport.open_session(timeout=10)
    channel.settimeout(20)
    channel.exec_command(task["command"])
    result["stdout"] = channel.makefile().read().decode()
    result["stderr"] = channel.makefile_stderr().read().decode()
    result["code"] = channel.recv_exit_status()
except Exception as error:
    result["error"] = f"{type(error).__name__}: {error}"
finally:
    transport.close()
json.dump(result, sys.stdout)
