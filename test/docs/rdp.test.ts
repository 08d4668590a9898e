/** The walk of docs/rdp.md to a desktop behind the bastion, with its own shell blocks. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { historyOf } from '../e2e/desktop-targets.ts'
import { type ShadowTarget, startShadowTarget } from '../e2e/rdp-desktops.ts'
import { ADMIN_PASSWORD, type Broker, startBroker } from '../peers/broker.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { SHADOW_PEERS } from '../peers/rdp/shadow.ts'
import { RDP_VIEWER_PEERS, xfreerdp } from '../peers/rdp/viewers.ts'
import { cut, differingPixels, type Picture, type Screen, shows, startScreen } from '../peers/screen.ts'
import { adapt, walkOf } from './walks.ts'

const SIZE = { width: 640, height: 480 }

describeWithPeers('the walk to a desktop', [...SHADOW_PEERS, ...RDP_VIEWER_PEERS, 'curl'], () => {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-walk-'))
  const picture: Picture = { ...SIZE, rgb: Buffer.alloc(640 * 480 * 3, 'colour') }
  let broker: Broker
  let target: ShadowTarget
  let screen: Screen
  beforeAll(async () => {
    target = await startShadowTarget('nla', SIZE)
    await target.paint(picture)
    broker = await startBroker({ rdp: {} })
    screen = await startScreen(SIZE.width, SIZE.height)
  })
  afterAll(async () => {
    await broker?.stop()
    await target?.stop()
    await screen?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  test('works as it stands there', async () => {
    const blocks = walkOf('docs/rdp.md')
    expect(blocks.map(({ name }) => name)).toEqual(['target', 'api'])
    const script = adapt(blocks.map(({ text }) => text).join(''), {
      'BASTION=https://127.0.0.1:8443': `BASTION=https://127.0.0.1:${broker.ports.https}`,
      'CERTIFICATE=data/tls/cert.pem': `CERTIFICATE=${broker.dataFolder}/tls/cert.pem`,
      'TARGET=192.0.2.30': 'TARGET=127.0.0.1',
      'PORT=3389': `PORT=${target.port}`,
      'first door, second door': ADMIN_PASSWORD,
    })
    const env = { ...process.env, LC_ALL: 'C.UTF-8' }
    const done = await run('bash', ['-euc', script], { cwd: folder, env, input: `${target.password}\n` })
    expect(done.code, `${done.stdout}${done.stderr}`).toBe(0)
    const login = { user: 'ops1+administrator@win1', password: 'known at the first door' }
    const client = await xfreerdp(screen, { port: broker.ports.rdp!, ...login }, ['/bpp:32'], SIZE)
    // The part below the line that lists missing rights.
    const lower = (all: Picture) => cut(all, 0, 100, SIZE.width, SIZE.height - 100)
    await shows(screen.display, (seen) => differingPixels(lower(seen), lower(picture)) === 0)
    await client.stop()
    const [session] = await historyOf(broker).closedSessions(1)
    expect(session).toMatchObject({ user: 'ops1', result: 'success' })
  })
})
