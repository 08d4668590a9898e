import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { buildExec, buildGlobalRequest } from '../../proxies/ssh/codec/build.ts'
import { MSG } from '../../proxies/ssh/codec/messages.ts'
import { MAX_AUTH_REQUESTS } from '../../proxies/ssh/transport/limits.ts'
import { type Bastion, startBastion } from '../e2e/bastion.ts'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { until } from '../until.ts'
import {
  AUTH,
  authRequest,
  connectRaw,
  connectToSignIn,
  interactiveAnswer,
  interactiveRequest,
  keyOffer,
  keyRequest,
  methodsOf,
  passwordRequest,
  type RawClient,
  serviceRequest,
  sessionOpen,
  signerOf,
  textOf,
} from './raw.ts'
import { PEERS } from './setting.ts'

const METHODS = 'publickey,keyboard-interactive,password'

describeWithPeers('sign-in', PEERS, () => {
  let bastion: Bastion
  let stranger: SshKey
  let rsa: SshKey
  let port: number
  let user: string
  const clients: RawClient[] = []

  beforeAll(async () => {
    bastion = await startBastion()
    stranger = await generateKey(bastion.home.folder)
    rsa = await generateKey(bastion.home.folder, { type: 'rsa' })
    const known = await bastion.broker.must<{ ssh_public_keys: string[] }>('GET', '/users/ops1')
    await bastion.broker.must('PUT', '/users/ops1', {
      ssh_public_keys: [...known.ssh_public_keys, rsa.publicKey],
    })
    port = bastion.broker.ports.ssh
    user = bastion.login().user
  })
  afterAll(() => bastion.stop())
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy()
  })

  /** A new address for each, so that no test locks out another. */
  let lastAddress = 1
  const newAddress = (): string => `127.0.1.${++lastAddress}`
  async function arrive(): Promise<RawClient> {
    const client = await connectToSignIn({ port, from: newAddress() })
    clients.push(client)
    return client
  }

  const isFailure = ([type]: Buffer): boolean => type === AUTH.failure

  /** Returns how many events report a sign-in of this client. */
  async function signIns(client: RawClient): Promise<number> {
    return (await bastion.events('auth.success')).filter(client.isOf).length
  }

  describe('public keys', () => {
    test('the key itself, signed over this session, signs in', async () => {
      const client = await arrive()
      client.send(keyRequest(user, signerOf(bastion.key.privateKey), client.sessionId))
      expect((await client.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.success)
    })

    test('an offer without a signature never does, however often', async () => {
      const client = await arrive()
      for (let n = 0; n < 5; n++) {
        client.send(keyOffer(user, signerOf(bastion.key.privateKey)))
        expect((await client.next(AUTH.success, AUTH.failure, AUTH.pkOk))[0]).toBe(AUTH.pkOk)
      }
      client.send(sessionOpen(0))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(MSG.channelOpenConfirmation)
      expect(await signIns(client)).toBe(0)
    })

    test.each([
      ['an empty signature', Buffer.alloc(0)],
      ['a signature of zeros', Buffer.alloc(64)],
      ['a signature of one byte', Buffer.from([1])],
    ])('%s is refused', async (_, bytes) => {
      const client = await arrive()
      const key = signerOf(bastion.key.privateKey)
      client.send(keyRequest(user, key, client.sessionId, { ...key, sign: () => bytes }))
      expect(methodsOf(await client.next(AUTH.success, AUTH.failure))).toBe(METHODS)
    })

    test('a signature over the id of another session is refused', async () => {
      const [one, other] = [await arrive(), await arrive()]
      one.send(keyRequest(user, signerOf(bastion.key.privateKey), other.sessionId))
      expect((await one.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)
    })

    test('a signature by another key than the one that is named is refused, either way round', async () => {
      const [own, other] = [signerOf(bastion.key.privateKey), signerOf(stranger.privateKey)]
      for (const [named, by] of [
        [own, other],
        [other, own],
        [other, other],
      ] as const) {
        const client = await arrive()
        client.send(keyRequest(user, named, client.sessionId, by))
        expect((await client.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)
      }
    })

    test('a signature for another login string is refused', async () => {
      const client = await arrive()
      const key = signerOf(bastion.key.privateKey)
      const other = keyRequest('ops1', key, client.sessionId)
      const sent = keyRequest(user, key, client.sessionId)
      const length = other.length - keyOffer('ops1', key).length
      client.send(Buffer.concat([sent.subarray(0, keyOffer(user, key).length), other.subarray(-length)]))
      expect((await client.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)
    })

    test('RSA signs with SHA-2 only', async () => {
      const found: Record<string, number | undefined> = {}
      for (const algorithm of ['ssh-rsa', 'rsa-sha2-256', 'rsa-sha2-512']) {
        const client = await arrive()
        client.send(keyRequest(user, signerOf(rsa.privateKey, algorithm), client.sessionId))
        found[algorithm] = (await client.next(AUTH.success, AUTH.failure))[0]
      }
      expect(found).toEqual({
        'ssh-rsa': AUTH.failure,
        'rsa-sha2-256': AUTH.success,
        'rsa-sha2-512': AUTH.success,
      })
    })

    test('a SHA-1 signature under the name of a SHA-2 algorithm is refused', async () => {
      const client = await arrive()
      const sha1 = signerOf(rsa.privateKey, 'ssh-rsa')
      const named = signerOf(rsa.privateKey, 'rsa-sha2-256')
      for (const by of [sha1, { ...sha1, algorithm: 'rsa-sha2-256' }]) {
        client.send(keyRequest(user, named, client.sessionId, by))
        expect((await client.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)
      }
    })

    test('several keys offered, another one signed: it is the signed one that counts', async () => {
      const [own, other] = [signerOf(bastion.key.privateKey), signerOf(stranger.privateKey)]
      const refused = await arrive()
      refused.send(keyOffer(user, other))
      expect((await refused.next(AUTH.failure, AUTH.pkOk))[0]).toBe(AUTH.failure)
      refused.send(keyOffer(user, own))
      expect((await refused.next(AUTH.failure, AUTH.pkOk))[0]).toBe(AUTH.pkOk)
      refused.send(keyRequest(user, other, refused.sessionId))
      expect((await refused.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)

      const accepted = await arrive()
      accepted.send(keyOffer(user, own), keyOffer(user, other))
      await accepted.next(AUTH.pkOk)
      accepted.send(keyRequest(user, own, accepted.sessionId))
      expect((await accepted.next(AUTH.success))[0]).toBe(AUTH.success)
    })

    test('the key of one person signs in nobody else', async () => {
      const client = await arrive()
      const key = signerOf(bastion.key.privateKey)
      client.send(keyOffer('admin', key))
      expect((await client.next(AUTH.failure, AUTH.pkOk))[0]).toBe(AUTH.failure)
      client.send(keyRequest('admin', key, client.sessionId))
      expect((await client.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)
    })

    test('the person cannot be changed between the offer and the signature', async () => {
      const client = await arrive()
      const key = signerOf(bastion.key.privateKey)
      client.send(keyOffer(user, key))
      await client.next(AUTH.pkOk)
      client.send(keyRequest('admin', key, client.sessionId))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(AUTH.success)
    })
  })

  describe('out of turn', () => {
    const early: [string, () => Buffer[]][] = [
      ['a session', () => [sessionOpen(0)]],
      ['a session and a command', () => [sessionOpen(0), buildExec(0, true, 'touch /tmp/owned')]],
      [
        'a global request',
        () => [buildGlobalRequest({ name: 'tcpip-forward', wantReply: true, data: Buffer.alloc(0) })],
      ],
      ['a channel request', () => [buildExec(0, true, 'id')]],
      ['an answer to a request', () => [Buffer.from([MSG.requestSuccess])]],
      ['the last message of the connection layer', () => [Buffer.from([127])]],
    ]

    test.each(early)('%s before sign-in ends the connection', async (_, messages) => {
      const client = await arrive()
      client.send(...messages())
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).toEqual([AUTH.disconnect])
    })

    test.each(early)(
      '%s instead of asking for the sign-in service ends the connection',
      async (_, messages) => {
        const client = await connectRaw({ port, from: newAddress() })
        clients.push(client)
        client.send(...messages())
        await client.untilClosed()
        expect(client.received.map((payload) => payload[0])).not.toContain(MSG.channelOpenConfirmation)
      },
    )

    test.each(early)('%s while a question waits for its answer ends the connection', async (_, messages) => {
      const client = await arrive()
      client.send(interactiveRequest(user))
      await client.next(AUTH.infoRequest)
      client.send(...messages(), interactiveAnswer(bastion.password))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).toEqual([AUTH.disconnect])
      expect(await signIns(client)).toBe(0)
    })

    test('a channel in the breath of a sign-in that fails', async () => {
      const client = await arrive()
      client.send(passwordRequest(user, 'wrong'), sessionOpen(0), buildExec(0, true, 'id'))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(MSG.channelOpenConfirmation)
    })

    test('a channel in the breath of a sign-in whose outcome is not known yet ends the connection too', async () => {
      const client = await arrive()
      client.send(passwordRequest(user, bastion.password), sessionOpen(0), buildExec(0, true, 'id'))
      await client.untilClosed()
      // Passwords are checked in the order of arrival: after this one that one is done.
      expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
      const opened = (await bastion.events('session.open')).map((event) => event['client_port'])
      expect(opened).not.toContain(client.port)
    })

    test("the server's own words in the client's mouth: USERAUTH_SUCCESS", async () => {
      const client = await arrive()
      client.send(Buffer.from([AUTH.success]))
      client.send(sessionOpen(0))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(MSG.channelOpenConfirmation)
      expect(await signIns(client)).toBe(0)
    })

    test('USERAUTH_SUCCESS after a wrong password', async () => {
      const client = await arrive()
      client.send(passwordRequest(user, 'wrong'), Buffer.from([AUTH.success]), sessionOpen(0))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(MSG.channelOpenConfirmation)
    })

    test('a request for another service than the sign-in ends the connection', async () => {
      const client = await arrive()
      client.send(serviceRequest('ssh-connection'))
      await client.untilClosed()
    })

    test('the sign-in may be asked for again, as paramiko does, but not without end', async () => {
      const client = await arrive()
      for (let n = 0; n < 10; n++) {
        client.send(serviceRequest('ssh-userauth'))
        await client.next(AUTH.serviceAccept)
      }
      client.send(...Array.from({ length: MAX_AUTH_REQUESTS }, () => serviceRequest('ssh-userauth')))
      await client.untilClosed()
      const late = await arrive()
      late.send(passwordRequest(user, bastion.password))
      await late.next(AUTH.success)
      late.send(serviceRequest('ssh-userauth'))
      await late.untilClosed()
    })

    test('sign-in to another service than the connection ends the connection', async () => {
      const client = await arrive()
      const request = passwordRequest(user, bastion.password)
      const at = request.indexOf('ssh-connection')
      request.write('ssh-userauthxx', at)
      client.send(request)
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(AUTH.success)
    })

    test.each([
      ['hostbased', Buffer.alloc(0)],
      ['gssapi-with-mic', Buffer.from([0, 0, 0, 0])],
      ['', Buffer.alloc(0)],
    ])('the method %j signs in nobody', async (method, fields) => {
      const client = await arrive()
      client.send(authRequest(user, method, fields))
      await until('a refusal', () => client.closed || client.received.some(isFailure) || undefined)
      expect(await signIns(client)).toBe(0)
    })

    test('answers to questions that nobody asked sign in nobody', async () => {
      const client = await arrive()
      client.send(interactiveAnswer(bastion.password))
      client.send(passwordRequest(user, 'wrong'), interactiveAnswer(bastion.password))
      await until('an answer', () => client.closed || client.received.some(isFailure) || undefined)
      expect(await signIns(client)).toBe(0)
    })

    test('answers before and after the one that counts: each question takes one', async () => {
      const client = await arrive()
      client.send(interactiveRequest(user))
      await client.next(AUTH.infoRequest)
      client.send(interactiveAnswer('wrong'), interactiveAnswer(bastion.password))
      expect((await client.next(AUTH.success, AUTH.failure))[0]).toBe(AUTH.failure)
      await new Promise((resolve) => setImmediate(resolve))
      expect(client.received.map((payload) => payload[0])).not.toContain(AUTH.success)
    })

    test('after signing in, a second sign-in as somebody else ends the connection', async () => {
      const client = await arrive()
      client.send(passwordRequest(user, bastion.password))
      await client.next(AUTH.success)
      client.send(passwordRequest('admin', 'whatever'))
      await client.untilClosed()
    })
  })

  describe('tries', () => {
    test('on one connection they are few, also in one breath', async () => {
      const client = await arrive()
      for (let n = 0; n < 30; n++) client.send(interactiveRequest(user), interactiveAnswer(`wrong ${n}`))
      await client.untilClosed()
      // Passwords are checked in the order of arrival: after this one all of those are done.
      expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
      const failures = (await bastion.events('auth.failure')).filter(client.isOf)
      // Answers that come before their question end the connection, maybe before the first is checked.
      expect(failures.length).toBeLessThanOrEqual(6)
    })

    test('the right password in a request that the client has taken back signs in nobody', async () => {
      const client = await arrive()
      client.send(
        interactiveRequest(user),
        interactiveAnswer(bastion.password),
        passwordRequest(user, 'wrong'),
      )
      // The answer came before its question, which is asked for the first request: the second one is not read.
      expect((await client.next(AUTH.success, AUTH.failure, AUTH.infoRequest))[0]).toBe(AUTH.infoRequest)
      client.send(sessionOpen(0))
      await client.untilClosed()
      expect(client.received.map((payload) => payload[0])).not.toContain(MSG.channelOpenConfirmation)
    })

    test('a connection that was turned away takes no more passwords', async () => {
      const from = newAddress()
      const client = await connectToSignIn({ port, from })
      clients.push(client)
      client.socket.on('end', () => undefined)
      for (let n = 0; n < 6; n++) {
        client.send(passwordRequest(user, `wrong ${n}`))
        if (n < 5) await client.next(AUTH.failure)
      }
      expect(textOf(await client.next(AUTH.banner))).toMatch(/too many/)
      client.send(passwordRequest(user, bastion.password))
      // The same client on a new connection: all messages of the old one have been read by then.
      const { code } = await ssh(bastion.home, bastion.login({ options: [`BindAddress=${from}`] }), ['true'])
      expect(code).toBe(0)
      expect(await signIns(client)).toBe(0)
    })

    test('asking without a proof, again and again, ends too', async () => {
      const client = await arrive()
      for (let n = 0; n < 100 && !client.closed; n++) {
        client.send(authRequest(user, 'none'))
        await until('an answer', () => client.closed || client.received.shift())
      }
      expect(client.closed).toBe(true)
    })

    test('a client that goes in the middle of its sign-in leaves the broker as it was', async () => {
      for (let n = 0; n < 9; n++) {
        const client = await arrive()
        client.send(n % 2 === 0 ? passwordRequest(user, 'wrong') : passwordRequest(user, bastion.password))
        if (n % 3 === 0) client.socket.end()
        else if (n % 3 === 1) client.socket.resetAndDestroy()
        else client.destroy()
      }
      expect((await ssh(bastion.home, bastion.login(), ['true'])).code).toBe(0)
    })
  })
})
