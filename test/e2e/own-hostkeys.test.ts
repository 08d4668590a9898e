/**
 * The bastion's own host keys: clients get new ones before they are used, with proof, and no other host's
 * keys.
 */
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { buildGlobalRequest } from '../../proxies/ssh/codec/build.ts'
import { MSG, parseGlobalRequest } from '../../proxies/ssh/codec/messages.ts'
import { Reader } from '../../proxies/ssh/codec/reader.ts'
import { Writer } from '../../proxies/ssh/codec/writer.ts'
import { newSshKey } from '../../src/host/ssh-keys.ts'
import { parsePublicKey } from '../../src/identity/public-key.ts'
import { verifySignature } from '../../src/identity/signature.ts'
import { type RawClient, signInRaw } from '../attacks/raw.ts'
import { begin } from '../attacks/setting.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { descendants } from '../peers/process.ts'
import { dbclient, plink } from '../peers/putty.ts'
import { until } from '../until.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

const BANNER = 'This way is watched.\nGo on only if you may.'
const PROVE = 'hostkeys-prove-00@openssh.com'

let bastion: Bastion
let broker: Broker
let folder: string
const next = newSshKey('ed25519')
const current = (type: string) => readFileSync(join(folder, `ssh_host_${type}_key.pub`), 'utf8')
const blobOf = (line: string) => Buffer.from(line.split(' ')[1]!, 'base64')
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

async function restart(): Promise<void> {
  const { dataFolder, ports } = broker
  await broker.kill()
  broker = await startBroker({ dataFolder, ports, config: { ssh: { banner: BANNER } } })
}

beforeAll(async () => {
  bastion = await startBastion({ subprotocols: [...ALL_RIGHTS, 'SSH_REVERSE_TCPIP'] })
  broker = bastion.broker
  folder = join(broker.dataFolder, 'ssh')
})
afterAll(async () => {
  await broker.stop()
  await bastion.stop()
})

test('a client with UpdateHostKeys goes through a change of keys without a word', async () => {
  bastion.home.trust(broker.ports.ssh, current('ed25519'))
  writeFileSync(join(folder, 'ssh_host_ed25519_key.next'), next.private, { mode: 0o600 })
  await restart()
  const learning = bastion.login({ options: ['UpdateHostKeys=yes'] })
  expect((await ssh(bastion.home, learning, ['true'])).code).toBe(0)
  const known = readFileSync(bastion.home.knownHosts, 'utf8')
  for (const line of [next.public, current('ed25519'), current('ecdsa'), current('rsa')]) {
    expect(known).toContain(line.split(' ')[1])
  }

  const old = blobOf(current('ed25519'))
  renameSync(join(folder, 'ssh_host_ed25519_key.next'), join(folder, 'ssh_host_ed25519_key'))
  writeFileSync(join(folder, 'ssh_host_ed25519_key.pub'), next.public)
  await restart()
  const strict = bastion.login({
    options: ['StrictHostKeyChecking=yes', 'HostKeyAlgorithms=ssh-ed25519', 'UpdateHostKeys=yes'],
  })
  expect((await ssh(bastion.home, strict, ['true'])).code).toBe(0)
  // A key that is no longer announced is removed.
  expect(readFileSync(bastion.home.knownHosts, 'utf8')).not.toContain(old.toString('base64'))
})

test('a worker that begins after a reload has the keys of the others, whatever the files have become', async () => {
  const file = join(folder, 'ssh_host_ed25519_key')
  const [privateText, publicText] = [readFileSync(file, 'utf8'), readFileSync(`${file}.pub`, 'utf8')]
  bastion.home.trust(broker.ports.ssh, publicText)
  const later = newSshKey('ed25519')
  try {
    writeFileSync(file, later.private)
    writeFileSync(`${file}.pub`, later.public)
    process.kill(broker.pid, 'SIGHUP')
    await until('the reload', () =>
      broker.log().includes('the configuration was read again') ? true : undefined,
    )
    const [worker] = descendants(broker.pid)
    process.kill(worker!, 'SIGKILL')
    await until('the next worker', () => {
      const [next] = descendants(broker.pid)
      return next !== undefined && next !== worker ? next : undefined
    })
    const strict = bastion.login({ options: ['StrictHostKeyChecking=yes', 'HostKeyAlgorithms=ssh-ed25519'] })
    expect(await ssh(bastion.home, strict, ['true'])).toMatchObject({ code: 0 })
  } finally {
    writeFileSync(file, privateText)
    writeFileSync(`${file}.pub`, publicText)
  }
})

describe('by hand', () => {
  async function arrive(): Promise<{ client: RawClient; announced: Buffer[] }> {
    const { user } = bastion.login()
    const client = await signInRaw({ port: broker.ports.ssh, user, password: bastion.password })
    const { name, wantReply, data } = parseGlobalRequest(await client.next(MSG.globalRequest))
    expect({ name, wantReply }).toEqual({ name: 'hostkeys-00@openssh.com', wantReply: false })
    const reader = new Reader(data, name)
    const announced: Buffer[] = []
    while (reader.remaining > 0) announced.push(Buffer.from(reader.string()))
    return { client, announced }
  }

  const request = (...blobs: Uint8Array[]): Buffer => {
    const writer = new Writer()
    for (const blob of blobs) writer.string(blob)
    return buildGlobalRequest({ name: PROVE, wantReply: true, data: writer.finish() })
  }

  test('every key is proven, by the session, in the order that was asked', async () => {
    const { client, announced } = await arrive()
    expect(announced.map((blob) => hex(blob))).toEqual(
      ['ed25519', 'ecdsa', 'rsa'].map((type) => hex(blobOf(current(type)))),
    )
    const asked = announced.toReversed()
    client.send(request(...asked))
    const reader = new Reader(await client.next(MSG.requestSuccess, MSG.requestFailure), PROVE, 1)
    const algorithms = asked.map((blob) => {
      const signed = new Writer().string(PROVE).string(client.sessionId).string(blob).finish()
      return verifySignature(parsePublicKey(blob), signed, reader.string())?.algorithm
    })
    expect(reader.remaining).toBe(0)
    expect(algorithms).toEqual(['rsa-sha2-512', 'ecdsa-sha2-nistp256', 'ssh-ed25519'])
    client.destroy()
  })

  test('keys of others, a key twice, none, and a second time: refused', async () => {
    const { client, announced } = await arrive()
    const [own] = announced
    const refused = [
      request(blobOf(newSshKey('ed25519').public)),
      request(own!, own!),
      request(),
      buildGlobalRequest({ name: PROVE, wantReply: true, data: Buffer.from('ffffffff', 'hex') }),
    ]
    for (const message of refused) {
      client.send(message)
      expect((await client.next(MSG.requestSuccess, MSG.requestFailure))[0]).toBe(MSG.requestFailure)
    }
    for (const expected of [MSG.requestSuccess, MSG.requestFailure]) {
      client.send(request(own!))
      expect((await client.next(MSG.requestSuccess, MSG.requestFailure))[0]).toBe(expected)
    }
    client.destroy()
  })

  test('in a heap of other requests every answer is in its place', async () => {
    const { client, announced } = await arrive()
    const alive = buildGlobalRequest({
      name: 'keepalive@openssh.com',
      wantReply: true,
      data: Buffer.alloc(0),
    })
    client.send(alive, alive, request(announced[0]!), alive)
    const answers: (number | undefined)[] = []
    for (let n = 0; n < 4; n++) answers.push((await client.next(MSG.requestSuccess, MSG.requestFailure))[0])
    const { requestSuccess: yes, requestFailure: no } = MSG
    expect(answers).toEqual([no, no, yes, no])
    client.destroy()
  })
})

test('a proof waits for the answer of the target that was asked for before', async () => {
  const { user } = bastion.login()
  const client = await signInRaw({ port: broker.ports.ssh, user, password: bastion.password })
  await begin(client)
  const listen = new Writer().string('127.0.0.1').uint32(0).finish()
  const key = new Writer().string(blobOf(current('ed25519'))).finish()
  client.send(
    buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: listen }),
    buildGlobalRequest({ name: PROVE, wantReply: true, data: key }),
    buildGlobalRequest({ name: 'keepalive@openssh.com', wantReply: true, data: Buffer.alloc(0) }),
  )
  const answers: Buffer[] = []
  for (let n = 0; n < 3; n++) answers.push(await client.next(MSG.requestSuccess, MSG.requestFailure))
  const [listener, proof, alive] = answers
  // RFC 4254 7.1: the port that the target chose
  expect([listener![0], listener!.length]).toEqual([MSG.requestSuccess, 5])
  expect([proof![0], proof!.subarray(9, 20).toString()]).toEqual([MSG.requestSuccess, 'ssh-ed25519'])
  expect(alive![0]).toBe(MSG.requestFailure)
  client.destroy()
})

test('the banner is shown before anybody signs in', async () => {
  const shown = BANNER.replace('\n', '\r\n')
  const refused = bastion.login({ password: 'wrong', options: ['LogLevel=INFO'] })
  const openssh = await ssh(bastion.home, refused, ['true'])
  expect(openssh.code).toBe(255)
  expect(openssh.stderr).toContain(shown)
  const hostFingerprint = `SHA256:${createHash('sha256').update(blobOf(next.public)).digest('base64').replaceAll('=', '')}`
  // PuTTY shows no banner without a terminal.
  const putty = await plink(bastion.home, bastion.login({ hostFingerprint }), 'exit 3')
  expect(putty.code).toBe(3)
  const dropbear = await dbclient(bastion.home, bastion.login(), 'exit 4')
  expect(dropbear.code).toBe(4)
  expect(dropbear.stderr).toContain('This way is watched.')
})
