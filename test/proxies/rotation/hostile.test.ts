/** Plugins toward targets that lie, flood, hang or leave in the middle: an error in time, and no secret sent. */
import { Buffer } from 'node:buffer'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { cisco } from '../../../proxies/rotation/cisco.ts'
import { MAX_RECEIVED } from '../../../proxies/rotation/connection.ts'
import { ldap } from '../../../proxies/rotation/ldap.ts'
import { mysql } from '../../../proxies/rotation/mysql.ts'
import type { ChangePlugin } from '../../../proxies/rotation/plugin.ts'
import { postgresql } from '../../../proxies/rotation/postgresql.ts'
import type { ChangeTarget } from '../../../src/contract/change.ts'
import { type CertificateFiles, certificateFiles } from '../../peers/vnc/certificate.ts'
import { until } from '../../until.ts'
import { errorOf, inTime, outcomeOf, ownChange, signInOf, targetAt } from './targets.ts'

const SECRET = 'Hidden-Pass1'
const NEXT = 'Hidden-Pass2'

let certificate: CertificateFiles
beforeAll(async () => {
  certificate = await certificateFiles()
  return () => certificate.remove()
})

interface Hostile {
  port: number
  /** All bytes of its clients. */
  heard(): string
  connections(): number
}

const servers: Server[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))))
})

/** Starts a server with this conduct for each client; by TLS if there is a certificate. */
async function hostile(conduct: (socket: Socket) => void, tls?: CertificateFiles): Promise<Hostile> {
  const heard: Buffer[] = []
  let open = 0
  const serve = (socket: Socket) => {
    open++
    socket.on('error', () => undefined)
    socket.on('close', () => open--)
    socket.on('data', (bytes: Buffer) => heard.push(bytes))
    conduct(socket)
  }
  const server = tls ? createTlsServer(tls.pem, serve) : createServer(serve)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    heard: () => Buffer.concat(heard).toString('latin1'),
    connections: () => open,
  }
}

const PLUGINS: readonly [string, ChangePlugin, ChangeTarget['parameters']][] = [
  ['LDAP', ldap, { insecure: true, user_dn: 'uid={login},dc=lab' }],
  ['MySQL', mysql, { insecure: true }],
  ['PostgreSQL', postgresql, { insecure: true }],
  ['Cisco', cisco, { transport: 'TELNET' }],
]

/** A bind response with the number of a request that was never sent. */
const UNASKED = Buffer.from('300c02017f61070a010004000400', 'hex')

describe.each(PLUGINS)('%s', (name, plugin, parameters) => {
  const verify = (port: number, signal = inTime()) =>
    outcomeOf(plugin.verify(targetAt(port, parameters), signInOf('alice', SECRET), signal))

  test('a target that closes at once is unreachable, as is one that is not there', async () => {
    const { port } = await hostile((socket) => socket.destroy())
    expect(await verify(port)).toBe('unreachable')
    expect(await verify(1)).toBe('unreachable')
  })

  test('a target that hangs ends with the time of the job, and its connection too', async () => {
    const target = await hostile(() => undefined)
    expect(await verify(target.port, AbortSignal.timeout(200))).toBe('timeout')
    await until('the end of the connection', () => target.connections() === 0)
    expect(await verify(target.port, AbortSignal.abort())).toBe('timeout')
  })

  test.each([
    ['zeros', Buffer.alloc(64 * 1024)],
    ['ones', Buffer.alloc(64 * 1024, 0xff)],
    ['lines', Buffer.from('what is your quest? \r\n'.repeat(3000))],
    ['answers that it was not asked for', Buffer.concat(Array(5000).fill(UNASKED))],
  ])('a flood of %s ends early', async (_what, piece) => {
    let sent = 0
    const { port, heard } = await hostile((socket) => {
      const more = () => {
        while (!socket.destroyed && socket.write(piece)) sent += piece.length
      }
      socket.on('drain', more)
      more()
    })
    expect(await verify(port)).toMatch(/^(unexpected_answer|unreachable|unclear|untrusted)$/)
    // The rest is in buffers of the system.
    expect(sent).toBeLessThan(64 * MAX_RECEIVED)
    // A bind without TLS is the password itself.
    if (name !== 'LDAP') expect(heard()).not.toContain(SECRET)
  })
})

describe('before TLS', () => {
  const secure = (port: number, parameters: ChangeTarget['parameters'] = {}) =>
    targetAt(port, parameters, { certificates: certificate.pem.cert })

  test.each([
    ['offers none', 'N', 'untrusted'],
    ['has an answer ready for inside', 'SR\0\0\0\x08\0\0\0\0', 'untrusted'],
  ])('PostgreSQL that %s gets nothing', async (_name, reply, outcome) => {
    const { port, heard } = await hostile((socket) =>
      socket.once('data', () => socket.write(reply, 'latin1')),
    )
    const job = postgresql.verify(secure(port), signInOf('alice', SECRET), inTime())
    expect(await outcomeOf(job)).toBe(outcome)
    expect(heard()).not.toContain('alice')
  })

  test.each([
    ['refuses it', '300c02010178070a010204000400', 'untrusted'],
    ['has an answer ready for inside', '300c02010178070a0100040004003010020102', 'untrusted'],
    ['has another length', '3084ffffffff', 'unexpected_answer'],
  ])('LDAP that %s gets nothing', async (_name, reply, outcome) => {
    const { port, heard } = await hostile((socket) => socket.once('data', () => socket.write(reply, 'hex')))
    const target = secure(port, { start_tls: true, user_dn: 'uid={login},dc=lab' })
    expect(await outcomeOf(ldap.verify(target, signInOf('alice', SECRET), inTime()))).toBe(outcome)
    expect(heard()).not.toContain('alice')
  })

  test.each([
    ['offers none', greeting({ tls: false }), 'untrusted'],
    [
      'has a part of an answer ready for inside',
      Buffer.concat([greeting({ tls: true }), Buffer.of(7, 0)]),
      'untrusted',
    ],
  ])('MySQL that %s gets nothing', async (_name, bytes, outcome) => {
    const { port, heard } = await hostile((socket) => socket.write(bytes))
    expect(await outcomeOf(mysql.verify(secure(port), signInOf('alice', SECRET), inTime()))).toBe(outcome)
    expect(heard()).not.toContain('alice')
  })
})

describe('PostgreSQL', () => {
  /** AuthenticationCleartextPassword and AuthenticationMD5Password (55.7). */
  const CLEAR = Buffer.from('520000000800000003', 'hex')
  const MD5 = Buffer.from('520000000c0000000501020304', 'hex')

  test.each([
    ['the password itself', CLEAR],
    ['its MD5', MD5],
  ])('that asks for %s without TLS does not get it', async (_name, question) => {
    const { port, heard } = await hostile((socket) => socket.once('data', () => socket.write(question)))
    const target = targetAt(port, { insecure: true })
    expect(await outcomeOf(postgresql.verify(target, signInOf('alice', SECRET), inTime()))).toBe('untrusted')
    expect(heard()).toContain('alice')
    expect(heard()).not.toMatch(/Hidden|md5/)
  })
})

describe('MySQL', () => {
  const OK = Buffer.from('07000002000000020000' + '00', 'hex')
  const verify = (port: number, target = targetAt(port, { insecure: true })) =>
    outcomeOf(mysql.verify(target, signInOf('alice', SECRET), inTime()))
  /** Asks for the sign-in by another method. */
  const switchTo = (name: string) => packet(2, Buffer.from(`\xfe${name}\0${'x'.repeat(20)}\0`, 'latin1'))

  test.each(['mysql_clear_password', 'sha256_password', 'caching_sha2_password', 'dialog'])(
    'that asks for a sign-in by %s without TLS does not get the password',
    async (name) => {
      const { port, heard } = await hostile((socket) => {
        socket.write(greeting({ tls: false }))
        socket.once('data', () => {
          socket.write(switchTo(name))
          // The next step of two of them: a key to encrypt the password with.
          socket.once('data', () => socket.write(packet(4, Buffer.of(1, 4))))
        })
      })
      expect(await verify(port)).toBe('untrusted')
      expect(heard()).not.toContain(SECRET)
    },
  )

  test('that asks for a file of the bastion gets none', async () => {
    const { port, heard } = await hostile((socket) => {
      socket.write(greeting({ tls: false }))
      socket.once('data', () => {
        socket.write(OK)
        // LOCAL INFILE Request in place of the reply to a statement.
        socket.on('data', () => socket.write(packet(1, Buffer.from('\xfb/etc/passwd', 'latin1'))))
      })
    })
    const job = mysql.change(targetAt(port, { insecure: true }), ownChange('alice', SECRET, NEXT), inTime())
    expect((await errorOf(job))?.code).toMatch(/^(unclear|unexpected_answer|unreachable)$/)
    expect(heard()).not.toContain('root:')
    expect(heard()).not.toContain(NEXT)
  })

  test('that refuses a password by its rules is understood, without the password', async () => {
    const { port } = await hostile((socket) => {
      socket.write(greeting({ tls: false }))
      socket.once('data', () => {
        socket.write(OK)
        socket.on('data', (bytes) => {
          const refusal = Buffer.from(`\xff\x1b\x07#HY000${NEXT} is too weak`, 'latin1')
          socket.write(bytes.includes('sql_mode') ? packet(1, OK.subarray(4)) : packet(1, refusal))
        })
      })
    })
    const job = mysql.change(targetAt(port, { insecure: true }), ownChange('alice', SECRET, NEXT), inTime())
    const error = await errorOf(job)
    expect(error).toMatchObject({ code: 'refused_password' })
    expect(error?.message).toContain('[secret] is too weak')
  })
})

describe('a network device', () => {
  const change = (port: number) =>
    errorOf(
      cisco.change(
        targetAt(port, { transport: 'TELNET' }),
        { ...ownChange('alice', SECRET, NEXT), by: signInOf('alice', SECRET, 'Enable-Pass1') },
        inTime(),
      ),
    )
  /** A device that prints the next piece for each line that it gets. */
  const device = (...pieces: readonly (string | 'leave')[]) =>
    hostile((socket) => {
      let next = 0
      const say = () => {
        const piece = pieces[next++]
        if (piece === 'leave') socket.destroy()
        else if (piece !== undefined) socket.write(piece)
      }
      say()
      socket.on('data', (bytes) => {
        if (bytes.includes('\r')) say()
      })
    })

  test.concurrent.each([
    ['speaks another language', ['Nom d’utilisateur : '], 'Nom'],
    ['asks for a password that it has no reason to', ['Username: ', 'New password: '], 'New password'],
    ['asks for more', ['Username: ', 'Password: ', 'sw>', 'Enter PIN: '], 'PIN'],
    ['changes its name', ['Username: ', 'Password: ', 'sw#', 'other(config)#'], 'other'],
  ])('that %s is not answered', async (_name, pieces, words) => {
    const { port, heard } = await device(...pieces)
    const error = await change(port)
    expect(error).toMatchObject({ code: 'unexpected_answer', message: expect.stringContaining(words) })
    expect(heard()).not.toContain(NEXT)
    expect(heard()).not.toContain('Enable-Pass1')
    if (pieces.length < 3) expect(heard()).not.toContain(SECRET)
  })

  test('that asks for a password in the configuration gets none', async () => {
    const { port, heard } = await device('Username: ', 'Password: ', 'sw#', '\r\nPassword: ')
    expect((await change(port))?.code).toBe('unexpected_answer')
    expect(heard().split(SECRET)).toHaveLength(2)
  })

  test('that sets the secret and leaves is no success', async () => {
    const { port, heard } = await device('Username: ', 'Password: ', 'sw#', 'sw(config)#', 'leave')
    expect((await change(port))?.code).toBe('unreachable')
    expect(heard()).toContain(`username alice secret ${NEXT}\r`)
  })

  test('that shows the secret in an error, or does not keep it, is reported without it', async () => {
    const begin = ['Username: ', 'Password: ', 'sw#', 'sw(config)#']
    const refused = await device(...begin, `\r\n% ${NEXT} is not good\r\nsw(config)#`)
    expect(await change(refused.port)).toMatchObject({
      code: 'refused_password',
      message: expect.stringContaining('% [secret] is not good'),
    })
    const unsaved = await device(...begin, 'sw(config)#', 'sw#', '\r\n%Error opening nvram (No space)\r\nsw#')
    expect(await change(unsaved.port)).toMatchObject({
      code: 'unclear',
      message: expect.stringContaining('the secret was set'),
    })
  })
})

/** A packet of MySQL: the length of its payload, and its number. */
function packet(number: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(4)
  header.writeUIntLE(payload.length, 0, 3)
  header[3] = number
  return Buffer.concat([header, payload])
}

/** Protocol::HandshakeV10. */
function greeting({ tls }: { tls: boolean }): Buffer {
  // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, LONG_PASSWORD, LOCAL_FILES, CONNECT_WITH_DB, and SSL.
  const capabilities = 0x00088289 | (tls ? 0x800 : 0)
  const low = Buffer.alloc(2)
  low.writeUInt16LE(capabilities & 0xffff)
  const high = Buffer.alloc(2)
  high.writeUInt16LE(capabilities >>> 16)
  return packet(
    0,
    Buffer.concat([
      Buffer.from('\x0a8.0.36\0', 'latin1'),
      Buffer.of(1, 0, 0, 0),
      Buffer.from('12345678\0', 'latin1'),
      low,
      Buffer.of(0x2d, 2, 0),
      high,
      Buffer.of(21),
      Buffer.alloc(10),
      Buffer.from('abcdefghijkl\0mysql_native_password\0', 'latin1'),
    ]),
  )
}
