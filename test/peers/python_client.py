"""The two SSH libraries of Python as clients, for test/peers/python.ts.

Argument: paramiko or asyncssh. stdin: one JSON object {port, user, password, identity, agent, tickets, steps}; with
`agent`, a socket, an exec forwards the agent there; with `tickets`, paramiko shows one; each step is one of
{exec: command, input: text}, {put: [local, remote]}, {get: [remote, local]}, {list: folder}, {shell: text}.
stdout: a JSON array with one object a step: {code, stdout, stderr}, {ok: true} or {names}; the last one is
{error: text} when a step raised.
"""
import asyncio
import json
import sys


def with_paramiko(task, results):
    import paramiko

    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    client.connect(
        "127.0.0.1",
        port=task["port"],
        username=task["user"],
        password=task.get("password"),
        key_filename=task.get("identity"),
        allow_agent=False,
        look_for_keys=False,
        timeout=10,
        gss_auth=task.get("tickets", False),
        gss_deleg_creds=True,
        gss_host="127.0.0.1",
        gss_trust_dns=False,
    )
    for step in task["steps"]:
        if "exec" in step:
            if task.get("agent"):
                channel = client.get_transport().open_session()
                forwarding = paramiko.agent.AgentRequestHandler(channel)
                channel.settimeout(15)
                channel.exec_command(step["exec"])
                stdin, stdout, stderr = channel.makefile_stdin("w"), channel.makefile(), channel.makefile_stderr()
            else:
                stdin, stdout, stderr = client.exec_command(step["exec"], timeout=15)
            stdin.write(step.get("input", ""))
            stdin.channel.shutdown_write()
            out, err = stdout.read().decode(), stderr.read().decode()
            results.append({"code": stdout.channel.recv_exit_status(), "stdout": out, "stderr": err})
        elif "shell" in step:
            channel = client.invoke_shell()
            channel.settimeout(15)
            channel.sendall(step["shell"])
            out = b""
            while True:
                data = channel.recv(65536)
                if not data:
                    break
                out += data
            results.append({"code": channel.recv_exit_status(), "stdout": out.decode(), "stderr": ""})
        else:
            with client.open_sftp() as sftp:
                if "put" in step:
                    sftp.put(*step["put"])
                    results.append({"ok": True})
                elif "get" in step:
                    sftp.get(*step["get"])
                    results.append({"ok": True})
                else:
                    results.append({"names": sftp.listdir(step["list"])})
    client.close()


async def with_asyncssh(task, results):
    import asyncssh

    identity = task.get("identity")
    async with asyncssh.connect(
        "127.0.0.1",
        port=task["port"],
        username=task["user"],
        password=task.get("password"),
        client_keys=[identity] if identity else None,
        known_hosts=None,
        agent_path=task.get("agent"),
        agent_forwarding=task.get("agent") is not None,
        config=None,
    ) as connection:
        for step in task["steps"]:
            if "exec" in step:
                done = await connection.run(step["exec"], input=step.get("input", ""))
                results.append({"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr})
            elif "shell" in step:
                done = await connection.run(None, input=step["shell"], term_type="xterm")
                results.append({"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr})
            else:
                async with connection.start_sftp_client() as sftp:
                    if "put" in step:
                        await sftp.put(*step["put"])
                        results.append({"ok": True})
                    elif "get" in step:
                        await sftp.get(*step["get"])
                        results.append({"ok": True})
                    else:
                        results.append({"names": await sftp.listdir(step["list"])})


def main():
    task = json.load(sys.stdin)
    results = []
    try:
        if sys.argv[1] == "paramiko":
            with_paramiko(task, results)
        else:
            asyncio.run(with_asyncssh(task, results))
    except Exception as error:
        results.append({"error": f"{type(error).__name__}: {error}"})
    json.dump(results, sys.stdout)


main()
