/**
 * The gate as a proxy in another process will see it: every request and every answer goes through
 * structuredClone, so that a message that is not plain data fails here.
 */

import { createHash } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { GateFile } from '../../proxies/session/gate-file.ts'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import { NoSpaceError } from '../../recordings/container/recording-file.ts'
import { RecordingWriter } from '../../recordings/container/writer.ts'
import { Drawer } from '../../recordings/show/screens/drawer.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { AuditLog } from '../../src/audit/log.ts'
import type { EventRequest, Gate, GateNotice, OpenSession } from '../../src/contract/gate.ts'
import { DnsError } from '../../src/dns/error.ts'
import { BrokerGate } from '../../src/gate/gate.ts'
import { Identities } from '../../src/identity/chain.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import { FACTORY_CONNECTION_POLICIES } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { SSH_OPTIONS, type SshOptions } from '../../src/model/ssh-options.ts'
import { openRecordingKeys, RecordingService } from '../../src/recording-service/service.ts'
import { StoreUnavailableError } from '../../src/store/engine/errors.ts'
import { openVault } from '../../src/vault/vault.ts'
import { copyingGate } from '../../src/workers/copying-gate.ts'
import { forger } from '../identity/certificates.ts'
import { sshString } from '../identity/keys.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { type Estate, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { hostKey } from './host-key.ts'

const SOURCE = { address: '192.0.2.7', port: 4711 }

let temporary: TemporaryStore
let estate: Estate
let broker: BrokerGate
let gate: Gate
let recordingService: RecordingService
const drawer = new Drawer()
afterAll(() => drawer.close())

beforeEach(async () => {
  temporary = await temporaryStore()
  const { store } = temporary
  estate = await smallEstate(store)
  const vault = await openVault(store, { file: `${temporary.path}.key` })
  await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('root password') }])
  const identities = new Identities(store.users, quickHasher(), new Lockout(), Date.now, vault)
  await identities.setPassword(estate.user.id, Secret.of('ops1 password'))
  recordingService = new RecordingService({
    root: `${temporary.path}.recordings`,
    keys: await openRecordingKeys(store.settings, vault),
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  await recordingService.start()
  const audit = new AuditLog({ repository: store.audit, now: Date.now })
  broker = new BrokerGate({
    store,
    identities,
    vault,
    audit,
    recordings: recordingService,
    drawer,
    now: Date.now,
  })
  gate = copyingGate(broker)
})
afterEach(() => temporary.remove())

const signIn = (login = 'ops1:root@srv1', password = 'ops1 password') =>
  gate.authenticate({ protocol: 'SSH', source: SOURCE, login, proof: { method: 'password', password } })

async function identity(login?: string): Promise<string> {
  const answer = await signIn(login)
  if (answer.result !== 'accepted') throw new Error(answer.result)
  return answer.identity.token
}

/** Writes the session's recording as a proxy does. */
const writing = (session: OpenSession, onSign: (statement: Uint8Array) => void = () => undefined) =>
  RecordingWriter.open(session.recording!, {
    create: (first) => GateFile.create(gate, session.id, first),
    sign: (statement) => {
      onSign(statement)
      return gate.sign({ session: session.id, statement })
    },
    clock: { now: Date.now, monotonic: () => process.hrtime.bigint() / 1000n },
    onFailure: () => undefined,
  })

async function opened(): Promise<OpenSession> {
  const answer = await gate.open({ identity: await identity(), protocol: 'SSH', source: SOURCE })
  if (answer.result !== 'opened') throw new Error(answer.result)
  return answer.session
}

const folder = async ({ id }: OpenSession) => (await findRecording(recordingService.root, id))!.directory

const codes = async () => (await temporary.store.audit.range(0, 1000)).map(({ code }) => code)

describe('authenticate', () => {
  test('tells who it is, and whether a target was named', async () => {
    expect(await signIn()).toMatchObject({ result: 'accepted', identity: { user: 'ops1', hasTarget: true } })
    expect(await signIn('ops1')).toMatchObject({ result: 'accepted', identity: { hasTarget: false } })
  })

  test('a wrong password, an unknown user and a malformed login', async () => {
    expect(await signIn('ops1:root@srv1', 'wrong')).toEqual({ result: 'rejected' })
    expect(await signIn('nobody:root@srv1')).toEqual({ result: 'rejected' })
    expect(await signIn('ops1:@@')).toMatchObject({ result: 'malformed' })
    expect(await codes()).toEqual(['auth.failure', 'auth.failure', 'auth.failure'])
  })
})

test('a ticket is only for a session with Kerberos', async () => {
  const { id, hasKerberos } = await opened()
  expect(hasKerberos).toBeUndefined()
  await expect(gate.serviceTicket({ session: id })).rejects.toThrow('has no Kerberos')
  await expect(gate.serviceTicket({ session: 'other' })).rejects.toThrow('no such session')
  expect(await codes()).not.toContain('session.kerberos')
})

describe('open', () => {
  test('answers with the target, the rights and the recording', async () => {
    const session = await opened()
    expect(session).toMatchObject({
      user: 'ops1',
      target: { canonical: 'root@local:srv1:ssh', host: '192.0.2.1', port: 22, login: 'root' },
      credentials: [],
      rights: ['SSH_SHELL'],
    })
    expect(existsSync(join(await folder(session), 'key.age'))).toBe(true)
    expect(await codes()).toEqual(['auth.success', 'session.open'])
  })

  test('hands out the one credential with the accepted host key, once, and one for each sign-in', async () => {
    const token = await identity()
    const request = { identity: token, protocol: 'SSH', source: SOURCE } as const
    const sessions: string[] = []
    for (let n = 0; n < 2; n++) {
      const answer = await gate.open(request)
      if (answer.result !== 'opened') throw new Error(answer.result)
      sessions.push(answer.session.id)
    }
    const keyOf = (session: string) => gate.hostKey({ session, key: hostKey('one') })
    const credentials = [{ type: 'password', password: 'root password' }]
    expect(await keyOf(sessions[0]!)).toEqual({ result: 'accepted', credentials })
    expect(await keyOf(sessions[0]!)).toEqual({ result: 'accepted' })
    const refusal = expect.stringContaining('one sign-in opens one target')
    expect(await keyOf(sessions[1]!)).toEqual({ result: 'refused', message: refusal })
    expect(await gate.open(request)).toEqual({ result: 'denied', message: refusal })
  })

  test('takes the target that was chosen in the menu', async () => {
    const token = await identity('ops1')
    const [entry] = (await gate.targets({ identity: token, protocol: 'SSH' })).targets
    const answer = await gate.open({
      identity: token,
      protocol: 'SSH',
      source: SOURCE,
      target: entry!.target,
    })
    expect(answer.result).toBe('opened')
  })

  test('refuses an identity that was never given, or has left', async () => {
    const request = { protocol: 'SSH', source: SOURCE } as const
    await expect(gate.open({ ...request, identity: 'made-up' })).rejects.toThrow('no longer signed in')
    const token = await identity()
    await gate.leave({ identity: token })
    await expect(gate.open({ ...request, identity: token })).rejects.toThrow('no longer signed in')
  })

  test('asks the rights anew: what was taken away since the sign-in is gone', async () => {
    const token = await identity()
    await temporary.store.authorizations.update(estate.authorization.id, { authorizeSessions: false })
    expect(await gate.open({ identity: token, protocol: 'SSH', source: SOURCE })).toMatchObject({
      result: 'denied',
    })
    await temporary.store.authorizations.update(estate.authorization.id, { authorizeSessions: true })
    await temporary.store.users.update(estate.user.id, { isDisabled: true })
    expect(await gate.open({ identity: token, protocol: 'SSH', source: SOURCE })).toMatchObject({
      result: 'denied',
    })
  })

  test('opens nothing when the audit log cannot be written', async () => {
    const token = await identity()
    const { store } = temporary
    store.audit.append = () => Promise.reject(new Error('disk full'))
    await expect(gate.open({ identity: token, protocol: 'SSH', source: SOURCE })).rejects.toThrow()
    expect(broker.running).toBe(0)
    expect((await store.sessions.list({})).total).toBe(0)
  })

  test('says so when the disk is full, at a sign-in and at an opening', async () => {
    const token = await identity()
    // As node:sqlite reports it (SQLITE_FULL).
    const full = Object.assign(new Error('database or disk is full'), { errcode: 13 })
    temporary.store.audit.append = () => Promise.reject(full)
    const message = 'the disk of the database is full, tell an administrator'
    expect(await signIn()).toEqual({ result: 'unavailable', message })
    expect(await gate.open({ identity: token, protocol: 'SSH', source: SOURCE })).toEqual({
      result: 'denied',
      message,
    })
  })

  test('opens nothing when the session cannot be stored', async () => {
    const token = await identity()
    temporary.store.sessions.create = () => Promise.reject(new Error('disk full'))
    await expect(gate.open({ identity: token, protocol: 'SSH', source: SOURCE })).rejects.toThrow()
    expect(broker.running).toBe(0)
    expect((await codes()).slice(-2)).toEqual(['session.open', 'session.close'])
  })

  test('is ended by whoever finds it in the list, however soon', async () => {
    const { sessions } = temporary.store
    const create = sessions.create.bind(sessions)
    let isEnded = false
    sessions.create = async (record) => {
      await create(record)
      isEnded = await broker.kill(record.id, 'suspicious', 'admin')
    }
    await opened()
    expect(isEnded).toBe(true)
  })

  test('leaves no session when the database goes away once it was opened', async () => {
    const { sessions, access } = temporary.store
    const { grants } = access
    const create = sessions.create.bind(sessions)
    sessions.create = async (record) => {
      await create(record)
      access.grants = async () => {
        access.grants = grants
        throw new StoreUnavailableError('it does not answer')
      }
    }
    expect(await gate.open({ identity: await identity(), protocol: 'SSH', source: SOURCE })).toEqual({
      result: 'denied',
      message: 'the bastion cannot reach its database, try again in a moment',
    })
    expect(broker.running).toBe(0)
    expect((await codes()).at(-1)).toBe('session.close')
  })

  test('opens nothing when the recording cannot begin', async () => {
    const token = await identity()
    recordingService.prepare = () => Promise.reject(new Error('no such folder'))
    const open = () => gate.open({ identity: token, protocol: 'SSH', source: SOURCE })
    expect(await open()).toEqual({
      result: 'denied',
      message: 'the session cannot be recorded, so it is not opened: tell an administrator',
    })
    expect(await codes()).toEqual(['auth.success', 'recording.failed', 'session.denied'])
    recordingService.prepare = () => Promise.reject(new NoSpaceError('too few bytes'))
    expect(await open()).toEqual({
      result: 'denied',
      message:
        'the disk is full, and the session cannot be recorded, so it is not opened: tell an administrator',
    })
  })
})

describe('a running session', () => {
  test('is recorded with checkpoints signed by a key that its process does not hold', async () => {
    const session = await opened()
    const writer = await RecordingWriter.open(session.recording!, {
      create: (first) => GateFile.create(gate, session.id, first),
      sign: (statement) => gate.sign({ session: session.id, statement }),
      clock: { now: Date.now, monotonic: () => process.hrtime.bigint() / 1000n },
      onFailure: (error) => {
        throw error
      },
    })
    expect(await writer.close({ result: 'success' })).toMatchObject({ state: 'sealed' })
  })

  test('gets signatures for its own checkpoints and for nothing else', async () => {
    const session = await opened()
    await expect(gate.sign({ session: session.id, statement: Buffer.from('anything') })).rejects.toThrow()
    await expect(gate.sign({ session: 'another', statement: Buffer.from('anything') })).rejects.toThrow()
  })

  test('gets none for a checkpoint of another, though it is a real one', async () => {
    const [session, other] = [await opened(), await opened()]
    let statement: Uint8Array | undefined
    const writer = await writing(session, (asked) => {
      statement = asked
    })
    await expect(gate.sign({ session: other.id, statement: statement! })).rejects.toThrow(
      'of a checkpoint of this session',
    )
    await writer.close({ result: 'success' })
  })

  test.each([
    ['nothing', {}],
    ['that it failed', { recording: { state: 'failed', size: 0, frames: 0, digest: '' } }],
    ['another digest', { recording: { state: 'sealed', size: 7, frames: 7, digest: 'f'.repeat(64) } }],
  ])('is accounted for by what was signed and lies there, though its process says %s', async (_, claim) => {
    const session = await opened()
    const { state, size, frames, digest } = await (await writing(session)).close({ result: 'success' })
    const close = { session: session.id, result: 'success', bytesIn: 1, bytesOut: 2, rightsUsed: [] } as const
    await broker.close({ ...close, rightsUsed: [], ...claim })
    const told = (await events()).find(({ code }) => code === 'recording.sealed')
    expect(told).toMatchObject({ session: session.id, size, digest })
    expect((await temporary.store.sessions.find(session.id))?.recording).toEqual({
      state,
      size,
      frames,
      digest,
    })
  })

  test('has failed when what was signed does not lie there, or was never closed', async () => {
    for (const isClosed of [true, false]) {
      const session = await opened()
      const writer = await writing(session)
      if (isClosed) await writer.close({ result: 'success' })
      if (isClosed) rmSync(join(await folder(session), FILE_NAME))
      const claim = { recording: { state: 'sealed', size: 7, frames: 7, digest: 'f'.repeat(64) } }
      const close = { session: session.id, result: 'success', bytesIn: 1, bytesOut: 2 } as const
      await broker.close({ ...close, rightsUsed: [], ...claim })
      const told = (await events()).filter((event) => event.session === session.id)
      expect(told.map(({ code }) => code)).toEqual(['session.open', 'recording.failed', 'session.close'])
      expect(told[1]).not.toHaveProperty('digest')
      expect((await temporary.store.sessions.find(session.id))?.recording?.state).toBe('failed')
      await writer.close({ result: 'success' }).catch(() => undefined)
    }
  })

  /** Sends an event as a compromised proxy might, in spite of the types. */
  const claimed = (session: string, code: string, fields: object) =>
    gate.event({ session, code, fields } as unknown as EventRequest)
  const events = async () =>
    (await temporary.store.audit.range(0, 1000)).map(({ code, json }) => ({
      code,
      ...JSON.parse(json).fields,
    }))

  test.each([
    ['session.kill', { user: 'admin', reason: 'forged' }],
    ['session.kill', { client_ip: '203.0.113.9', client_port: 22, reason: 'forged' }],
    ['session.kill', { api_key: 'ci', reason: 'forged' }],
    ['session.kill', { session: '01ARZ3NDEKTSV4RRFFQ69G5FAV', reason: 'forged' }],
    ['session.kill', { target_host: '203.0.113.9', device: 'srv9', reason: 'forged' }],
    ['command', { object: 'ls', authorization: 'root', profile: 'product_administrator' }],
    ['command', { object: 'ls', user: 'admin' }],
    ['channel.open', { session: 'forged', user: 'admin', subprotocol: 'SSH_SHELL' }],
    ['channel.open', { subprotocol: 'SSH_SHELL', sha256: 'of another event' }],
    ['file.transfer', { path: '/etc/shadow', size: 'many' }],
    ['file.transfer', { path: ['/etc/shadow'] }],
    ['file.transfer', { path: '/etc/shadow', size: Number.NaN }],
    ['clipboard', { signature: 'x', signer: 'y' }],
    ['channel.denied', { subprotocol: 'x', reason: 'y', count: 1_000_000 }],
    ['command', { object: 'ls', uid: 0, sudo_user: 'root' }],
    ['auth.success', { user: 'admin' }],
    ['object.delete', { object: 'admin' }],
    ['toString', {}],
  ])('says nothing in %s that is the broker’s to say: %j', async (code, fields) => {
    const { id } = await opened()
    const notices: GateNotice[] = []
    gate.onNotice((notice) => notices.push(notice))
    const before = await events()
    await expect(claimed(id, code, fields)).rejects.toThrow()
    const told = (await events()).slice(before.length)
    expect(told).toEqual([
      {
        code: 'session.kill',
        session: id,
        reason: expect.stringContaining('proxy was refused an event'),
        protocol: 'SSH',
        account: 'root',
        domain: 'local',
        device: 'srv1',
        service: 'ssh',
        target_host: '192.0.2.1',
      },
    ])
    expect(notices).toMatchObject([{ type: 'stop', session: id }])
    expect(await gate.hostKey({ session: id, key: Buffer.from('any') })).toMatchObject({ result: 'refused' })
  })

  test('a rule that ends it is told with the session, and without anybody who did it', async () => {
    const { id } = await opened()
    await gate.event({
      session: id,
      code: 'session.kill',
      fields: { reason: `rule "rm"${'!'.repeat(100_000)}` },
    })
    const told = (await events()).at(-1)
    expect(told).toMatchObject({
      code: 'session.kill',
      session: id,
      reason: expect.stringMatching(/^rule "rm"!/),
    })
    expect(told).not.toHaveProperty('user')
    expect(told).not.toHaveProperty('client_ip')
    const answer = await gate.hostKey({ session: id, key: Buffer.from('any') })
    expect(answer.result === 'refused' && answer.message.length).toBeLessThan(2100)
  })

  test('what a proxy may say it says with the session’s own user and target', async () => {
    const { id } = await opened()
    await gate.event({ session: id, code: 'channel.open', fields: { subprotocol: 'SSH_SHELL' } })
    expect((await events()).at(-1)).toMatchObject({
      code: 'channel.open',
      session: id,
      user: 'ops1',
      client_ip: SOURCE.address,
      subprotocol: 'SSH_SHELL',
    })
  })

  test('is stopped by a notice, and closed once', async () => {
    const session = await opened()
    const notices: GateNotice[] = []
    gate.onNotice((notice) => notices.push(notice))
    expect(await broker.kill(session.id, 'suspicious', 'admin')).toBe(true)
    expect(notices).toEqual([{ type: 'stop', session: session.id, reason: 'ended by admin: suspicious' }])
    const close = { session: session.id, result: 'killed', bytesIn: 1, bytesOut: 2, rightsUsed: [] } as const
    await gate.close({ ...close, rightsUsed: ['SSH_SHELL'] })
    await expect(gate.close({ ...close, rightsUsed: [] })).rejects.toThrow('no such session')
    expect(await broker.kill(session.id, 'again', 'admin')).toBe(false)
    expect(await temporary.store.sessions.find(session.id)).toMatchObject({
      result: 'killed',
      subprotocols: ['SSH_SHELL'],
      bytesIn: 1,
      bytesOut: 2,
    })
  })
})

describe('host keys', () => {
  test('pinned at first sight, then only that one', async () => {
    const { id } = await opened()
    expect(await gate.hostKey({ session: id, key: hostKey('one') })).toMatchObject({ result: 'accepted' })
    expect(await gate.hostKey({ session: id, key: hostKey('one') })).toMatchObject({ result: 'accepted' })
    expect(await gate.hostKey({ session: id, key: hostKey('two') })).toMatchObject({ result: 'refused' })
    expect((await codes()).slice(2)).toEqual(['hostkey.new', 'hostkey.changed'])
  })

  test('of two first sights at a time one is pinned', async () => {
    const { id } = await opened()
    const answers = await Promise.all([
      gate.hostKey({ session: id, key: hostKey('one') }),
      gate.hostKey({ session: id, key: hostKey('two') }),
    ])
    expect(answers.map(({ result }) => result)).toEqual(['accepted', 'refused'])
  })

  test('pinned policy: refused until an administrator has accepted it', async () => {
    await temporary.store.services.update(estate.service.id, { hostKeyPolicy: 'pinned' })
    const { id } = await opened()
    expect(await gate.hostKey({ session: id, key: hostKey('one') })).toMatchObject({ result: 'refused' })
    const [offered] = await temporary.store.hostKeys.ofService(estate.service.id)
    expect(offered).toMatchObject({ state: 'offered', keyType: 'ssh-ed25519' })
    await temporary.store.hostKeys.update(offered!.id, { state: 'accepted' })
    expect(await gate.hostKey({ session: id, key: hostKey('one') })).toMatchObject({ result: 'accepted' })
  })

  test('a target that shows a new key each time fills no table', async () => {
    await temporary.store.services.update(estate.service.id, { hostKeyPolicy: 'pinned' })
    const { id } = await opened()
    for (let n = 0; n < 12; n++) await gate.hostKey({ session: id, key: hostKey(String(n)) })
    expect(await temporary.store.hostKeys.ofService(estate.service.id)).toHaveLength(5)
  })

  describe('that somebody has to vouch for', () => {
    const under = async (hostKeyPolicy: 'ca' | 'dns', ssh?: Partial<SshOptions>) => {
      await temporary.store.services.update(estate.service.id, { hostKeyPolicy })
      const policy = FACTORY_CONNECTION_POLICIES.SSH
      if (ssh) await temporary.store.connectionPolicies.update(policy, { ssh: { ...SSH_OPTIONS, ...ssh } })
      return await opened()
    }
    const smith = forger()
    const certificate = (principal: string) =>
      smith.certificate({ type: 2, principals: sshString(principal) })
    const kept = () => temporary.store.hostKeys.ofService(estate.service.id)
    const last = async () => JSON.parse((await temporary.store.audit.range(0, 1000)).at(-1)!.json)

    test('ca: the target is asked for a certificate, and only then it may show one', async () => {
      const byCa = await under('ca', { hostCaKeys: [smith.line] })
      expect(byCa).toMatchObject({ wantsHostCertificate: true, hostKeyTypes: [] })
      const shown = certificate('192.0.2.1')
      expect(await gate.hostKey({ session: byCa.id, key: shown })).toMatchObject({ result: 'accepted' })
      await temporary.store.services.update(estate.service.id, { hostKeyPolicy: 'first_sight' })
      const byPin = await opened()
      expect(byPin.wantsHostCertificate).toBe(false)
      const answer = await gate.hostKey({ session: byPin.id, key: shown })
      expect(answer).toMatchObject({ result: 'refused' })
      expect(await last()).toMatchObject({
        fields: { result: 'refused', reason: expect.stringContaining('not requested') },
      })
      expect(await kept()).toEqual([])
    })

    test('ca: what was pinned before has no say, and what is refused is not kept', async () => {
      const { id: pinning } = await opened()
      await gate.hostKey({ session: pinning, key: hostKey('one') })
      const { id, hostKeyTypes } = await under('ca', { hostCaKeys: [smith.line] })
      expect(hostKeyTypes).toEqual([])
      expect(await gate.hostKey({ session: id, key: hostKey('one') })).toMatchObject({ result: 'refused' })
      for (const shown of [certificate('192.0.2.9'), certificate('192.0.2.1').subarray(0, -1)]) {
        expect(await gate.hostKey({ session: id, key: shown })).toMatchObject({ result: 'refused' })
      }
      expect(await kept()).toHaveLength(1)
      expect((await codes()).slice(-3)).toEqual(['hostkey.new', 'hostkey.changed', 'hostkey.new'])
    })

    test('dns: each session asks anew, and a slow answer holds up nobody else', async () => {
      const digest = (blob: Buffer) => createHash('sha256').update(blob).digest()
      const asked: string[] = []
      let release: () => void = () => undefined
      const slow = new Promise<void>((resolve) => {
        release = resolve
      })
      broker.hostTrust = {
        sshfp: async (host) => {
          asked.push(host)
          if (asked.length === 1) await slow
          return {
            isAuthenticated: true,
            records: [{ algorithm: 4, digest: 2, fingerprint: digest(hostKey('one')) }],
          }
        },
      }
      const { id } = await under('dns')
      const first = gate.hostKey({ session: id, key: hostKey('one') })
      const { id: other } = await under('dns')
      expect(await gate.hostKey({ session: other, key: hostKey('two') })).toMatchObject({ result: 'refused' })
      expect((await codes()).at(-1)).toBe('hostkey.changed')
      expect(await gate.hostKey({ session: other, key: hostKey('one') })).toMatchObject({
        result: 'accepted',
      })
      release()
      expect(await first).toMatchObject({ result: 'accepted' })
      expect(asked).toEqual(['192.0.2.1', '192.0.2.1', '192.0.2.1'])
      expect(await kept()).toEqual([])
    })

    test('dns: what the resolver cannot answer is refused, a fault of the program is not hidden', async () => {
      const { id } = await under('dns')
      broker.hostTrust = { sshfp: () => Promise.reject(new DnsError('no answer')) }
      expect(await gate.hostKey({ session: id, key: hostKey('one') })).toMatchObject({ result: 'refused' })
      broker.hostTrust = { sshfp: () => Promise.reject(new TypeError('a mistake')) }
      await expect(gate.hostKey({ session: id, key: hostKey('one') })).rejects.toThrow('a mistake')
    })
  })

  test.each([Buffer.alloc(0), Buffer.alloc(3), Buffer.from('\x00\x00\x10\x00abcd'), Buffer.alloc(20_000)])(
    'malformed key %#',
    async (malformed) => {
      const { id } = await opened()
      expect(await gate.hostKey({ session: id, key: malformed })).toMatchObject({ result: 'refused' })
    },
  )
})
