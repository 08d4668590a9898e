/**
 * Attacks on the sign-in of viewers at a whole broker: guessing, discovering user names, and occupying all
 * places.
 */
import { execFile } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openVncTarget } from '../../proxies/vnc/back.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import type { VncSecurityType } from '../../src/model/vnc-options.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { trustingGate, vncSession } from '../proxies/vnc/sessions.ts'
import { until } from '../until.ts'

const PASSWORD = 'ops1 password'
const run = promisify(execFile)

let broker: Broker
const sockets: Socket[] = []

beforeAll(async () => {
  broker = await startBroker({ vnc: {}, config: { login_grace: '3s' } })
  for (const user_name of ['ops1', 'ops2']) {
    await broker.must('POST', '/users', { user_name, password: PASSWORD, profile: 'user' })
  }
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(async () => await broker?.stop())

/** Returns 'in', or the viewer's error. */
async function signIn(login: string, password: string, type: VncSecurityType = 'tlsplain'): Promise<string> {
  const session = vncSession({ port: broker.ports.vnc!, login, password, types: [type] })
  const options = { gate: trustingGate(), signal: AbortSignal.timeout(20_000), isShared: true }
  try {
    const { stream } = await openVncTarget(session, options)
    stream.destroy()
    return 'in'
  } catch (error) {
    return (error as Error).message.replace(/^.* and says: /, '')
  }
}

test('who signs in gets in, and nobody else learns why not', async () => {
  expect(await signIn('ops1', PASSWORD)).toBe('in')
  const wrong = await signIn('ops1', 'guessed 1')
  expect(wrong).toBe('wrong user name, password or ticket')
  expect(await signIn('nobody', PASSWORD)).toBe(wrong)
  expect(await signIn('', PASSWORD, 'vncauth')).toBe(wrong)
})

test('connections that stop in the middle of it are cut, and others get in meanwhile', async () => {
  const closed: Socket[] = []
  // Nothing; a version; a type; the beginning of TLS.
  const stages = [
    '',
    'RFB 003.008\n',
    'RFB 003.008\n\x13\0\x02',
    'RFB 003.008\n\x13\0\x02\0\0\x01\x06\x16\x03\x01',
  ]
  for (let n = 0; n < 100; n++) {
    const socket = connect(broker.ports.vnc!, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => closed.push(socket))
    socket.resume()
    socket.write(stages[n % stages.length]!, 'latin1')
  }
  expect(await signIn('ops1', PASSWORD)).toBe('in')
  await until('the end of all', () => (closed.length === sockets.length ? true : undefined), 20_000)
})

test('guessing over VNC locks the user out here, at all doors, and nowhere else', async () => {
  for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) {
    expect(await signIn('ops2', 'guessed 1', n % 2 === 0 ? 'tlsplain' : 'apple_dh')).not.toBe('in')
  }
  expect(await signIn('ops2', PASSWORD)).toBe('wrong user name, password or ticket')
  const atApi = async (from: string): Promise<string> => {
    const { stdout } = await run('curl', [
      ...['-sS', '-o', '/dev/null', '-w', '%{http_code}', '--interface', from, '--insecure'],
      ...['-H', 'Content-Type: application/json', '-d', JSON.stringify({ user: 'ops2', password: PASSWORD })],
      `https://127.0.0.1:${broker.ports.https}/api/session`,
    ])
    return stdout
  }
  expect([await atApi('127.0.0.1'), await atApi('127.0.0.2')]).toEqual(['401', '200'])
  expect(await signIn('ops1', PASSWORD)).toBe('in')
})
