/** VNC targets at the gate: their users and security types, and the pinning of their keys. */

import { generateKeyPairSync } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Right } from '../../src/model/rights.ts'
import { VNC_OPTIONS } from '../../src/model/vnc-options.ts'
import { StoreUnavailableError } from '../../src/store/engine/errors.ts'
import { until } from '../until.ts'
import { SOURCE, type VncWorld, vncWorld } from './desktop-world.ts'
import { byPassword } from './grounds.ts'
import { certificate, rsa, spki } from './own-certificate.ts'

interface Cut {
  authorization?: readonly Right[]
  service?: readonly Right[]
}

let world: VncWorld
beforeEach(async () => {
  world = await vncWorld()
})
afterEach(() => world.temporary.remove())

describe('a VNC target', () => {
  test('is opened with its rights, its credential and what its policy says', async () => {
    expect(await world.opened()).toMatchObject({
      target: { canonical: 'root@local:srv1:vnc', protocol: 'VNC', port: 5900, login: 'root' },
      credentials: [{ type: 'password', password: 'screen' }],
      rights: ['VNC', 'VNC_CLIPBOARD_UP'],
      hostKeyTypes: [],
      vncOptions: VNC_OPTIONS,
    })
  })

  test('whose proxy dies while the database is away has its session closed when that is back', async () => {
    const { gate, temporary } = world
    const { id } = await world.opened()
    const { sessions } = temporary.store
    const { find } = sessions
    let isAway = true
    sessions.find = (...asked) =>
      isAway ? Promise.reject(new StoreUnavailableError('it is away')) : find(...asked)
    expect(await gate.abandon(id, 'its proxy has died')).toBe(
      `session ${id}: its proxy has died; it is closed when the database is back`,
    )
    expect(gate.isRunning(id)).toBe(false)
    isAway = false
    const closed = async () => (await world.events()).filter(([code]) => code === 'session.close')
    await until('the event', async () => (await closed())[0])
    await until('the end', async () => (await find(id))?.end)
    expect(await find(id)).toMatchObject({ result: 'lost' })
    expect(await closed()).toHaveLength(1)
  })

  test('is reached by VNC only, and by VNC no other', async () => {
    const { gate, temporary, estate, service } = world
    const identity = await world.signIn('ops1')
    const listed = async (protocol: 'VNC' | 'SSH') =>
      (await gate.targets({ identity: await world.signIn('ops1', protocol), protocol })).targets.map(
        ({ target }) => target,
      )
    await temporary.store.targetGroups.update(estate.targetGroup.id, {
      sessionAccounts: [service, estate.service.id].map((serviceId) => ({
        accountId: estate.account.id,
        serviceId,
      })),
    })
    await temporary.store.authorizations.update(estate.authorization.id, { subprotocols: [] })
    expect(await listed('VNC')).toEqual(['root@local:srv1:vnc'])
    expect(await listed('SSH')).toEqual(['root@local:srv1:ssh'])
    const target = 'root@local:srv1:ssh'
    expect(await world.open({ identity, target })).toMatchObject({ result: 'denied' })
    for (const ask of [gate.targets.bind(gate), world.open]) {
      await expect(ask({ identity, protocol: 'SSH', source: SOURCE, target })).rejects.toThrow('not by SSH')
    }
  })

  test.each([
    ['by the authorization', { authorization: ['VNC_CLIPBOARD_UP'] as const }],
    ['by the service', { service: ['VNC_CLIPBOARD_UP'] as const }],
  ])('without the right VNC itself there is none, %s', async (_, { authorization, service }: Cut) => {
    const { store } = world.temporary
    if (authorization) {
      await store.authorizations.update(world.estate.authorization.id, { subprotocols: [...authorization] })
    }
    if (service) await store.services.update(world.service, { subprotocols: [...service] })
    const identity = await world.signIn()
    expect(await world.open({ identity })).toMatchObject({ result: 'denied' })
    expect(await world.gate.targets({ identity, protocol: 'VNC' })).toEqual({ targets: [], total: 0 })
    const { user } = world.estate
    const wanted = { user, basis: byPassword(user), target: 'root@local:srv1:vnc', protocol: 'VNC' } as const
    expect(await world.gate.tickets.issue({ ...wanted, address: '192.0.2.7' })).toEqual({ result: 'unknown' })
  })

  test('takes no password that is not there, unless its policy names types without one', async () => {
    await world.vault.setCredentials(world.estate.account.id, [])
    expect(await world.open()).toMatchObject({
      result: 'denied',
      message: expect.stringContaining('no credential is stored'),
    })
    await world.setPolicy({ securityTypes: ['vncauth', 'x509none', 'none'] })
    const { credentials, vncOptions } = await world.opened()
    expect(credentials).toEqual([])
    expect(vncOptions.securityTypes).toEqual(['x509none', 'none'])
  })
})

describe('without a stored account', () => {
  const hold = (held: { interactive?: boolean; mapping?: boolean }) =>
    world.temporary.store.targetGroups.update(world.estate.targetGroup.id, {
      sessionAccounts: [],
      interactiveServiceIds: held.interactive ? [world.service] : [],
      mappingServiceIds: held.mapping ? [world.service] : [],
    })

  test('the user comes by the name and the password of the sign-in', async () => {
    await hold({ mapping: true })
    const identity = await world.signIn('ops1:ops1@srv1:vnc')
    expect(await world.open({ identity })).toMatchObject({
      result: 'opened',
      session: { target: { login: 'ops1' }, credentials: [{ type: 'password', password: 'ops1 password' }] },
    })
  })

  test('a viewer has nothing to ask with while it signs in, so the question comes afterwards', async () => {
    await hold({ interactive: true })
    const identity = await world.signIn()
    expect(await world.open({ identity })).toMatchObject({
      result: 'logon_needed',
      question: { target: 'srv1:vnc', login: 'root' },
    })
    expect(await world.open({ identity, logon: { password: 'typed' } })).toMatchObject({
      result: 'opened',
      session: { target: { login: 'root' }, credentials: [{ type: 'password', password: 'typed' }] },
    })
  })
})

describe('the key of a target', () => {
  test('is pinned at first sight, and outlives the certificate about it', async () => {
    const { gate } = world
    const { id: session } = await world.opened()
    const keyPair = rsa(2048)
    const first = await certificate(keyPair)
    const renewed = await certificate(keyPair)
    expect(renewed).not.toEqual(first)
    expect(await gate.hostKey({ session, key: first, kind: 'x509' })).toEqual({ result: 'accepted' })
    expect(await gate.hostKey({ session, key: renewed, kind: 'x509' })).toEqual({ result: 'accepted' })
    const other = await certificate()
    expect(await gate.hostKey({ session, key: other, kind: 'x509' })).toMatchObject({
      result: 'refused',
      message: expect.stringContaining('has changed (now x509 SHA256:'),
    })
    const kept = await world.temporary.store.hostKeys.ofService(world.service)
    kept.sort((a, b) => a.state.localeCompare(b.state))
    expect(kept).toMatchObject([
      { keyType: 'x509', state: 'accepted', key: spki(keyPair.publicKey).toString('base64') },
      { keyType: 'x509', state: 'offered' },
    ])
    expect((await world.events()).slice(2)).toMatchObject([
      ['hostkey.new', { method: 'x509', digest: kept[0]!.fingerprint, result: 'pinned' }],
      ['hostkey.changed', { method: 'x509' }],
    ])
  })

  test('once it is pinned, types that show none, or one of another kind, are no way around it', async () => {
    const { gate } = world
    const { id: session } = await world.opened()
    const { publicKey } = rsa(2048)
    expect(await gate.hostKey({ session, key: spki(publicKey), kind: 'rsa' })).toEqual({ result: 'accepted' })
    const { hostKeyTypes, vncOptions } = await world.opened()
    expect(hostKeyTypes).toEqual(['rsa'])
    expect(vncOptions.securityTypes).toEqual(['ra2_256', 'ra2'])
    await world.setPolicy({ securityTypes: ['vncauth', 'x509vnc'] })
    expect(await world.open()).toMatchObject({
      result: 'denied',
      message: expect.stringContaining('security_types'),
    })
  })

  test('where it has to be accepted first, a target has to show one', async () => {
    const { gate, temporary, service } = world
    await temporary.store.services.update(service, { hostKeyPolicy: 'pinned' })
    const { id: session, vncOptions } = await world.opened()
    expect(vncOptions.securityTypes).toEqual(['x509plain', 'x509vnc', 'ra2_256', 'ra2'])
    const key = await certificate()
    expect(await gate.hostKey({ session, key, kind: 'x509' })).toMatchObject({ result: 'refused' })
    const [offered] = await temporary.store.hostKeys.ofService(service)
    await temporary.store.hostKeys.update(offered!.id, { state: 'accepted' })
    expect(await gate.hostKey({ session, key, kind: 'x509' })).toEqual({ result: 'accepted' })
  })

  test('is refused when it is none, too weak, or under a policy of SSH', async () => {
    const { gate, temporary, service } = world
    const { id: session } = await world.opened()
    const whole = await certificate()
    const refused = [
      { key: whole.subarray(0, -9), kind: 'x509' },
      { key: new Uint8Array(0), kind: 'x509' },
      { key: Buffer.alloc(70_000), kind: 'rsa' },
      { key: spki(rsa(512).publicKey), kind: 'rsa' },
      { key: whole, kind: 'rsa' },
      {
        key: spki(
          generateKeyPairSync('ec', { namedCurve: 'P-256' })
            .publicKey.export({ type: 'spki', format: 'pem' })
            .toString(),
        ),
        kind: 'rsa',
      },
    ] as const
    for (const one of refused) {
      expect(await gate.hostKey({ session, ...one })).toMatchObject({ result: 'refused' })
    }
    await temporary.store.services.update(service, { hostKeyPolicy: 'ca' })
    const { id } = await world.opened()
    expect(await gate.hostKey({ session: id, key: whole, kind: 'x509' })).toMatchObject({ result: 'refused' })
    expect(await temporary.store.hostKeys.ofService(service)).toEqual([])
  })
})
