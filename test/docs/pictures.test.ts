/**
 * The README's pictures: the menu in a terminal of a real ssh, and a session that begins there, as in the
 * recording. Drawn again and compared pixel by pixel; RENEW_PICTURES=1 replaces the files.
 */
import { Buffer } from 'node:buffer'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Emulator } from '../../recordings/decode/terminal/emulator.ts'
import { PALETTE } from '../../recordings/show/picture/palette.ts'
import { canvasFor, drawTerminal } from '../../recordings/show/picture/terminal.ts'
import { encodePng } from '../../src/drawing/png.ts'
import { sallyport } from '../e2e/recorded.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { createHome, type Home } from '../peers/home.ts'
import { generateKey } from '../peers/keys.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { type Sshd, startSshd } from '../peers/sshd.ts'
import { openTerminal } from '../peers/terminal.ts'
import { canCreateUsers } from '../peers/users.ts'
import { until } from '../until.ts'
import { ROOT } from './walks.ts'

const PICTURES = join(ROOT, 'docs', 'pictures')
const MAX_BYTES = 60 * 1024
const SIZE = { columns: 80, rows: 12 }
const PASSWORD = 'known at the first door'
const PROMPT = 'root@web1:~# '

/** Account, device, service and description of the user's targets; only the first one answers. */
const TARGETS = [
  { account: 'root', device: 'web1', service: 'ssh', protocol: 'SSH', text: 'web server of the shop' },
  { account: 'postgres', device: 'db1', service: 'ssh', protocol: 'SSH', text: 'database of the shop' },
  {
    account: 'admin',
    device: 'core-sw1',
    service: 'telnet',
    protocol: 'TELNET',
    text: 'core switch, hall 2',
  },
  { account: 'backup', device: 'nas1', service: 'ssh', protocol: 'SSH', text: 'nightly backups' },
]

/** The files in a home folder of the target, identical each time. */
const SITE = 'server_name  shop.example.com;\nlisten       443 ssl;\nroot         /srv/shop;\n'

describe.runIf(canCreateUsers())('as root', () => {
  describeWithPeers('the pictures', ['sshd', 'ssh'], () => {
    let home: Home
    let target: string
    let sshd: Sshd
    let broker: Broker

    beforeAll(async () => {
      home = createHome()
      target = mkdtempSync(join(tmpdir(), 'sallyport-picture-'))
      writeFileSync(join(target, 'shop.conf'), SITE)
      const shell = join(target, '.shell')
      writeFileSync(shell, shellScript(target))
      chmodSync(shell, 0o755)
      const key = await generateKey(home.folder, { type: 'ed25519' })
      sshd = await startSshd({
        users: [{ name: 'root', authorizedKeys: [key.publicKey] }],
        extraConfig: [`ForceCommand ${shell}`, 'PrintMotd no', 'PrintLastLog no'],
      })
      broker = await startBroker()
      await provision(broker, sshd.port, key.privateKey)
    })

    afterAll(async () => {
      await broker.stop()
      await sshd.stop()
      home.remove()
      rmSync(target, { recursive: true, force: true })
    })

    test('show the menu, and what was done behind it', { timeout: 300_000 }, async () => {
      const terminal = openTerminal('bash', ['--norc', '--noprofile'], {
        env: {
          ...home.env(),
          PATH: `${namedBastion(home, broker.ports.ssh)}:${process.env.PATH}`,
          PS1: '$ ',
        },
        cwd: home.folder,
        columns: SIZE.columns,
        lines: SIZE.rows,
      })
      await terminal.expect('$ ')
      terminal.send('ssh ops1@bastion\r')
      await terminal.expect('assword: ')
      terminal.send(`${PASSWORD}\r`)
      await terminal.expect('to leave: ')
      compare('menu', await drawn(terminal.output()))

      terminal.send('web1\r')
      await terminal.expect('to leave: ')
      terminal.send('1\r')
      for (const line of [
        'cat shop.conf',
        "sed -i 's/443/8443/' shop.conf",
        'grep --color listen shop.conf',
      ]) {
        await terminal.expect(PROMPT)
        terminal.send(`${line}\r`)
      }
      await terminal.expect('8443 ssl;')
      await terminal.expect(PROMPT)
      terminal.send('exit\r')
      await terminal.expect('$ ')
      await terminal.close()

      const session = await until('the end of the session', async () => {
        const rows = await broker.must<{ id: string }[]>('GET', '/sessions?status=closed')
        return rows[0]?.id
      })
      const done = await sallyport(broker, ['recordings', 'export', session, '--format', 'png'])
      expect(done).toMatchObject({ code: 0, stderr: '' })
      compare('replay', done.bytes)
    })
  })
})

/** Makes a folder with an ssh that knows the bastion by its name. */
function namedBastion(home: Home, port: number): string {
  const config = join(home.folder, 'config')
  const host = `Host bastion\nHostName 127.0.0.1\nHostKeyAlias bastion\nPort ${port}\nIdentityFile none\n`
  writeFileSync(config, `${readFileSync(home.sshConfig, 'utf8')}${host}`)
  const bin = join(home.folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const script = `#!/bin/sh\nexec ${findProgram('ssh')} -F ${config} "$@"\n`
  writeFileSync(join(bin, 'ssh'), script, { mode: 0o755 })
  return bin
}

/** Returns a shell script with the same output on every machine. */
function shellScript(folder: string): string {
  const env = `PATH=/usr/bin:/bin HOME=${folder} TERM="$TERM" LANG=C.UTF-8 PS1='${PROMPT}'`
  return `#!/bin/sh\ncd ${folder} && exec env -i ${env} bash --norc --noprofile\n`
}

async function provision({ must }: Broker, port: number, privateKey: string): Promise<void> {
  await must('POST', '/users', {
    user_name: 'ops1',
    display_name: 'Operator One',
    email: 'ops1@example.com',
    profile: 'user',
    user_auths: ['local_password'],
    password: PASSWORD,
  })
  await must('POST', '/usergroups', { group_name: 'operators', users: ['ops1'] })
  const accounts: string[] = []
  for (const { account, device, service, protocol, text } of TARGETS) {
    await must('POST', '/devices', { device_name: device, host: '127.0.0.1', description: text })
    await must('POST', `/devices/${device}/services`, { service_name: service, protocol, port })
    const credentials = [{ type: 'ssh_key', private_key: privateKey }]
    await must('POST', '/accounts', { account_name: account, device, domain: 'local', credentials })
    accounts.push(`${account}@local:${device}:${service}`)
  }
  await must('POST', '/targetgroups', { group_name: 'servers', session: { accounts } })
  await must('POST', '/authorizations', {
    user_group: 'operators',
    target_group: 'servers',
    authorize_sessions: true,
    subprotocols: ['SSH_SHELL', 'TELNET'],
  })
}

/** Draws a terminal's screen with this output. */
async function drawn(output: string): Promise<Buffer> {
  const emulator = new Emulator(SIZE)
  await emulator.push(output)
  await emulator.settle()
  const canvas = canvasFor(SIZE)
  drawTerminal(canvas, emulator)
  emulator.destroy()
  return encodePng(canvas, PALETTE)
}

/** Returns the chunks of a PNG except its title, which names the session. */
function chunksOf(png: Buffer): Map<string, Buffer> {
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    const type = png.toString('latin1', at + 4, at + 8)
    const chunk = png.subarray(at, at + png.readUInt32BE(at) + 12)
    if (type !== 'tEXt') chunks.set(type, chunk)
  }
  return chunks
}

/** Returns dimensions, colours and pixels; zlib's compression does not matter. */
function contentOf(png: Buffer): { head: string; palette: string; pixels: Buffer } {
  const chunks = chunksOf(png)
  const of = (type: string) => chunks.get(type)!
  return {
    head: of('IHDR').toString('hex'),
    palette: of('PLTE').toString('hex'),
    pixels: inflateSync(of('IDAT').subarray(8, -4)),
  }
}

function compare(name: string, png: Buffer): void {
  const file = join(PICTURES, `${name}.png`)
  if (process.env['RENEW_PICTURES']) {
    mkdirSync(PICTURES, { recursive: true })
    writeFileSync(file, Buffer.concat([png.subarray(0, 8), ...chunksOf(png).values()]))
  }
  const known = readFileSync(file)
  expect(known.length).toBeLessThan(MAX_BYTES)
  const [now, before] = [contentOf(png), contentOf(known)]
  expect([now.head, now.palette]).toEqual([before.head, before.palette])
  expect(now.pixels.equals(before.pixels), `docs/pictures/${name}.png shows what is drawn now`).toBe(true)
}
