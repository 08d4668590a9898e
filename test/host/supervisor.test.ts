/** Messages to a supervisor: a datagram socket of Python is at the other end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSupervisor, type Supervisor } from '../../src/host/supervisor.ts'
import { until } from '../until.ts'

const RECEIVER = `
import json, socket, sys
name = sys.argv[1]
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind('\\0' + name[1:] if name.startswith('@') else name)
print('null', flush=True)
while True:
  print(json.dumps(receiver.recv(65536).decode()), flush=True)
`

let folder: string
let receiver: ChildProcess
let received: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-supervisor-'))
})
afterEach(async () => {
  const ended = once(receiver, 'exit')
  receiver.kill()
  await ended
  rmSync(folder, { recursive: true, force: true })
})

async function listen(place: string): Promise<void> {
  received = []
  receiver = spawn('python3', ['-c', RECEIVER, place], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  receiver.stdout?.on('data', (piece: Buffer) => {
    text += piece.toString()
    received = text
      .split('\n')
      .slice(1, -1)
      .map((line) => JSON.parse(line))
  })
  await until('the receiver', () => (text.startsWith('null') ? true : undefined))
}

function opened(env: Record<string, string>): Supervisor {
  const found = openSupervisor(env, 7)
  if ('missing' in found) throw new Error(found.missing)
  return found.supervisor
}

const has = (text: string) =>
  until(text, () => (received.some((one) => one.includes(text)) ? true : undefined))

test('a start, a reload and an end are told in order, and no status begins a field of its own', async () => {
  const place = join(folder, 'notify')
  await listen(place)
  const supervisor = opened({ NOTIFY_SOCKET: place })
  supervisor.ready('serving')
  supervisor.reloading()
  supervisor.ready('serving\nMAINPID=1')
  supervisor.stopping('the bastion is stopping')
  await has('STOPPING=1')
  await until('the extension', () => (received.length >= 6 ? true : undefined))
  supervisor.close()
  expect(received.map((one) => one.replace(/USEC=\d+/, 'USEC=N'))).toEqual([
    'EXTEND_TIMEOUT_USEC=N',
    'READY=1\nSTATUS=serving',
    'RELOADING=1\nMONOTONIC_USEC=N\nSTATUS=reading the configuration again',
    'READY=1\nSTATUS=serving MAINPID=1',
    'STOPPING=1\nSTATUS=the bastion is stopping',
    'EXTEND_TIMEOUT_USEC=N',
  ])
})

test('a name outside the file system gets the beats of a watchdog, if it is for this process', async () => {
  const place = `@sallyport-test-${process.pid}`
  await listen(place)
  const env = { NOTIFY_SOCKET: place, WATCHDOG_USEC: '20000' }
  const other = opened({ ...env, WATCHDOG_PID: '8' })
  const watched = opened({ ...env, WATCHDOG_PID: '7' })
  const beats = () => received.filter((one) => one === 'WATCHDOG=1').length
  await until('three beats', () => (beats() >= 3 ? true : undefined))
  watched.close()
  other.ready('the end of the beats')
  await has('the end of the beats')
  const before = beats()
  other.ready('later')
  await has('later')
  expect(beats()).toBe(before)
  other.close()
})

test('without a supervisor nothing is sent; with an address that is none the reason is known', async () => {
  const place = join(folder, 'notify')
  await listen(place)
  const unsupervised = opened({})
  unsupervised.ready('serving')
  unsupervised.stopping('the bastion is stopping')
  unsupervised.close()
  for (const wrong of ['relative', '@', `/${'x'.repeat(200)}`, 'vsock:2:1']) {
    expect(openSupervisor({ NOTIFY_SOCKET: wrong })).toHaveProperty('missing')
  }
  // A socket that is gone loses the message, and ends nothing.
  const lost = opened({ NOTIFY_SOCKET: join(folder, 'gone') })
  lost.ready('serving')
  lost.close()
  const last = opened({ NOTIFY_SOCKET: place })
  last.ready('the only one')
  await has('the only one')
  last.close()
  expect(received.filter((one) => !one.startsWith('EXTEND'))).toEqual(['READY=1\nSTATUS=the only one'])
})
