/** The walk of docs/operations.md to a desktop behind the bastion, with its own shell blocks. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsIn } from '../e2e/bastion.ts'
import { ADMIN_PASSWORD, type Broker, startBroker } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { paint } from '../peers/screen.ts'
import { startXvnc, XVNC_PEERS, type Xvnc } from '../peers/vnc/servers.ts'
import { SNAPSHOT_PEERS, vncSnapshot } from '../peers/vnc/viewers.ts'
import { until } from '../until.ts'
import { adapt, walkOf } from './walks.ts'

describeWithPeers('the walk to a desktop', [...XVNC_PEERS, ...SNAPSHOT_PEERS, 'curl'], () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-walk-'))
  let broker: Broker
  let target: Xvnc
  beforeAll(async () => {
    target = await startXvnc({ types: ['VncAuth'], password: 'screen 1' })
    await paint(target.display, { width: 640, height: 480, rgb: Buffer.alloc(640 * 480 * 3, 'colour') })
    broker = await startBroker({ vnc: {} })
  })
  afterAll(async () => {
    await broker?.stop()
    await target?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('works as it stands there', async () => {
    const blocks = walkOf('docs/operations.md').filter(({ name }) => name !== 'move')
    expect(blocks.map(({ name }) => name)).toEqual(['target', 'api', 'ticket'])
    const script = adapt(blocks.map(({ text }) => text).join(''), {
      'BASTION=https://127.0.0.1:8443': `BASTION=https://127.0.0.1:${broker.ports.https}`,
      'CERTIFICATE=data/tls/cert.pem': `CERTIFICATE=${broker.dataFolder}/tls/cert.pem`,
      'TARGET=192.0.2.20': 'TARGET=127.0.0.1',
      'PORT=5900': `PORT=${target.port}`,
      'first door, second door': ADMIN_PASSWORD,
    })
    const env = { ...process.env, LC_ALL: 'C' }
    const done = await run('bash', ['-euc', script], { cwd: folder, env, input: 'screen 1\n' })
    expect(done.code, `${done.stdout}${done.stderr}`).toBe(0)
    const { user, password } = JSON.parse(done.stdout.trim().split('\n').at(-1)!)
    expect(user).toBe('ops1:screen@local@desk1:vnc')
    const { picture, said } = await vncSnapshot({ port: broker.ports.vnc!, password })
    expect(picture, said).toMatchObject({ width: 640, height: 480 })
    const closed = await until('the end of the session', () =>
      eventsIn(broker.log()).find(({ event }) => event === 'session.close'),
    )
    expect(closed).toMatchObject({ user: 'ops1', protocol: 'VNC', device: 'desk1', result: 'success' })
  })
})
