/** Peers that send and do not read: the broker's memory for them is bounded, and other sessions continue. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ssh, sshArguments } from '../peers/openssh.ts'
import { quiet } from '../peers/process.ts'
import { findProgram } from '../peers/program.ts'
import { until } from '../until.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

const MEBIBYTE = 1024 * 1024
/** The most that one stopped session may add to the broker's memory. */
const ALLOWED_GROWTH = 64 * MEBIBYTE
/** Milliseconds in which the target could send more than that if nothing bounded the broker. */
const WATCH_MS = 4_000

/** Less: only the windows hold a forwarded connection. */
const ALLOWED_FORWARDED = 16 * MEBIBYTE
/**
 * Garbage of the data that moves until a window is full; without the stop it would be hundreds of MiB in that
 * time.
 */
const ALLOWED_GARBAGE = 64 * MEBIBYTE

let bastion: Bastion
let source: Server
const children: ChildProcess[] = []

beforeAll(async () => {
  bastion = await startBastion({ subprotocols: [...ALL_RIGHTS, 'SSH_DIRECT_TCPIP'] })
  source = await startSource()
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  source.close()
  await bastion.stop()
})

function residentBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1]) * 1024
}

/** Returns the broker's memory after a session of the same kind has warmed it up and was indexed. */
async function baseline(): Promise<number> {
  await ssh(bastion.home, bastion.login(), [
    `head -c ${64 * MEBIBYTE} /dev/zero > /dev/null; head -c ${64 * MEBIBYTE} /dev/zero`,
  ])
  await quiet(bastion.broker.pid)
  return residentBytes(bastion.broker.pid)
}

async function highest(ms: number): Promise<number> {
  let most = 0
  for (const end = Date.now() + ms; Date.now() < end; ) {
    most = Math.max(most, residentBytes(bastion.broker.pid))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return most
}

function start(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv,
  input: 'pipe' | 'ignore' = 'ignore',
): ChildProcess {
  const child = spawn(command, args, { env, stdio: [input, 'pipe', 'inherit'] })
  children.push(child)
  return child
}

test('a client that stops reading while the target floods', async () => {
  const before = await baseline()
  const env = bastion.home.env(bastion.password)
  const child = start(
    findProgram('ssh'),
    [...sshArguments(bastion.home, bastion.login()), 'cat /dev/zero'],
    env,
  )
  await new Promise((resolve) => child.stdout!.once('data', resolve))
  process.kill(child.pid!, 'SIGSTOP')
  expect((await highest(WATCH_MS)) - before).toBeLessThan(ALLOWED_GROWTH)
  // Other sessions are served meanwhile.
  expect((await ssh(bastion.home, bastion.login(), ['echo alive'])).stdout).toBe('alive\n')
})

test('a client that names a window of a gigabyte and stops reading', async () => {
  const before = await baseline()
  const { port, user } = bastion.login()
  const script = `
import os, signal, sys, paramiko
transport = paramiko.Transport(('127.0.0.1', ${port}))
transport.connect(username='${user}', password='${bastion.password}')
channel = transport.open_session(window_size=2**30)
channel.exec_command('cat /dev/zero')
channel.recv(1)
print('reading', flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
`
  const child = start(findProgram('python3'), ['-c', script], bastion.home.env())
  await new Promise((resolve) => child.stdout!.once('data', resolve))
  expect((await highest(WATCH_MS)) - before).toBeLessThan(ALLOWED_GROWTH)
})

/** Sends without end to every connection, and reads nothing. */
function startSource(): Promise<Server> {
  const zeros = Buffer.alloc(MEBIBYTE)
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    const pump = (): void => {
      while (socket.write(zeros));
      socket.once('drain', pump)
    }
    pump()
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(server))
  })
}

describe('a forwarded connection', () => {
  /**
   * paramiko with a window of a gigabyte, after it has warmed up the broker with as much data as a stopped
   * session moves.
   */
  const forwarded = (then: string) => {
    const { port, user } = bastion.login()
    const { port: to } = source.address() as AddressInfo
    return `
import os, signal, socket, paramiko
transport = paramiko.Transport(('127.0.0.1', ${port}))
transport.connect(username='${user}', password='${bastion.password}')
channel = transport.open_channel('direct-tcpip', ('127.0.0.1', ${to}), ('127.0.0.1', 1), window_size=2**30)
left = 64 * 2**20
while left > 0: left -= len(channel.recv(2**20))
${then}
`
  }

  test('whose client names a window of a gigabyte and stops reading', async () => {
    const script = forwarded(`print('reading', flush=True)
os.kill(os.getpid(), signal.SIGSTOP)`)
    const child = start(findProgram('python3'), ['-c', script], bastion.home.env())
    await new Promise((resolve) => child.stdout!.once('data', resolve))
    const before = residentBytes(bastion.broker.pid)
    expect((await highest(WATCH_MS)) - before).toBeLessThan(ALLOWED_FORWARDED)
    expect((await ssh(bastion.home, bastion.login(), ['echo alive'])).stdout).toBe('alive\n')
    child.kill('SIGKILL')
  })

  test('whose other end stops reading while the client floods', async () => {
    const script = forwarded(`print('sending', flush=True)
channel.settimeout(10)
try:
    while True: channel.sendall(b'x' * 2**20)
except socket.timeout: pass`)
    const flood = async () => {
      const child = start(findProgram('python3'), ['-c', script], bastion.home.env())
      await new Promise((resolve) => child.stdout!.once('data', resolve))
      return child
    }
    // The data before the stop leaves garbage, most of it in a heap that is not warm yet.
    const first = await flood()
    await highest(WATCH_MS)
    const before = residentBytes(bastion.broker.pid)
    const second = await flood()
    expect((await highest(WATCH_MS)) - before).toBeLessThan(ALLOWED_GARBAGE)
    first.kill('SIGKILL')
    second.kill('SIGKILL')
  })
})

test('a target that stops reading while the client floods', async () => {
  const before = await baseline()
  const env = bastion.home.env(bastion.password)
  const args = [...sshArguments(bastion.home, bastion.login()), 'echo ready; kill -STOP $$; cat > /dev/null']
  const child = start(findProgram('ssh'), args, env, 'pipe')
  await new Promise((resolve) => child.stdout!.once('data', resolve))
  const flood = Buffer.alloc(MEBIBYTE)
  child.stdin!.on('error', () => undefined)
  const pump = (): void => {
    while (child.stdin!.write(flood));
    child.stdin!.once('drain', pump)
  }
  pump()
  expect((await highest(WATCH_MS)) - before).toBeLessThan(ALLOWED_GROWTH)
})

test('when they are gone their sessions are closed and accounted for', async () => {
  for (const child of children) child.kill('SIGKILL')
  const current = await until('no running session', async () => {
    const rows = await bastion.broker.must<unknown[]>('GET', '/sessions?status=current')
    return rows.length === 0 ? rows : undefined
  })
  expect(current).toEqual([])
})
