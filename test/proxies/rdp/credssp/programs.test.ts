/** CredSSP with real programs: FreeRDP on either side, and MIT's SPNEGO with gss-ntlmssp as the client. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { STATUS } from '../../../../proxies/rdp/credssp/status.ts'
import { CredSspError } from '../../../../proxies/rdp/gss/errors.ts'
import { ntHash } from '../../../../src/model/ntlm-auth.ts'
import { describeWithPeers } from '../../../peers/program.ts'
import { GSSAPI_PEERS, gssapiClient, startGssapiServer } from '../../../peers/rdp/gssapi.ts'
import { SHADOW_PEERS, type Shadow, samLine, startShadow } from '../../../peers/rdp/shadow.ts'
import { authenticateOnly, LOGON_FAILURE, XFREERDP_PEERS } from '../../../peers/rdp/xfreerdp.ts'
import { type Screen, startScreen } from '../../../peers/screen.ts'
import {
  connectTarget,
  createIdentity,
  type Identity,
  listen,
  listenBetween,
  type Outcome,
  serveCredSsp,
  signIn,
} from './connections.ts'

const USER = 'alice'
const PASSWORD = 'TargetPw1!é'

describeWithPeers('the client, toward freerdp-shadow', SHADOW_PEERS, () => {
  let screen: Screen
  let shadow: Shadow

  beforeAll(async () => {
    screen = await startScreen(320, 240)
    shadow = await startShadow({ screen, security: 'nla', users: [{ name: USER, password: PASSWORD }] })
  })
  afterAll(async () => {
    await shadow?.stop()
    await screen?.stop()
  })

  test('hands the password over to who knows it', async () => {
    const socket = await signIn({ port: shadow.port, user: USER, password: PASSWORD })
    socket.destroy()
  })

  test('a wrong password, an unknown user: the target closes', async () => {
    for (const login of [
      { user: USER, password: 'wrong' },
      { user: 'nobody', password: PASSWORD },
    ]) {
      await expect(signIn({ port: shadow.port, ...login })).rejects.toMatchObject({ reason: 'ended' })
    }
  })

  test('somebody in between who passes everything on, with another key: no password goes out', async () => {
    const between = await listenBetween(shadow.port)
    const login = { port: between.port, user: USER, password: PASSWORD }
    await expect(signIn(login)).rejects.toMatchObject({ reason: 'ended' })
    expect(between.seen.map(({ authInfo }) => authInfo)).toEqual([undefined, undefined])
    // Proves that the key was the cause: with the target's certificate the same login succeeds.
    const direct = await connectTarget(shadow.port)
    const certificate = direct.getPeerCertificate().raw
    direct.destroy()
    const socket = await signIn({ ...login, certificate })
    socket.destroy()
    between.close()
  })

  test("FreeRDP's own program computes the same NT hash", async () => {
    expect(await samLine(USER, PASSWORD)).toContain(ntHash(PASSWORD).toString('hex'))
  })
})

describeWithPeers("the client, toward MIT's SPNEGO", GSSAPI_PEERS, () => {
  const login = { user: USER, domain: 'CORP', password: PASSWORD }

  test.each([true, false])('hands the password over (SPNEGO: %s)', async (isSpnego) => {
    const server = await startGssapiServer(await createIdentity(), login)
    const socket = await signIn({ port: server.port, ...login, isSpnego })
    expect(await server.received).toEqual(login)
    socket.destroy()
  })

  test('bound to the certificate of another connection', async () => {
    const server = await startGssapiServer(await createIdentity(), login)
    const certificate = new X509Certificate((await createIdentity()).cert).raw
    const elsewhere = { port: server.port, ...login, certificate, isSpnego: true }
    await expect(signIn(elsewhere)).rejects.toBeInstanceOf(CredSspError)
    await expect(server.received).rejects.toThrow('Permission denied')
  })

  test('a wrong password', async () => {
    const server = await startGssapiServer(await createIdentity(), login)
    const wrong = { port: server.port, ...login, password: 'wrong', isSpnego: true }
    await expect(signIn(wrong)).rejects.toBeInstanceOf(CredSspError)
    await expect(server.received).rejects.toThrow()
  })
})

describe('the server', () => {
  let identity: Identity
  let port: number
  let close: () => void
  const outcomes: Promise<Outcome>[] = []

  beforeAll(async () => {
    identity = await createIdentity()
    const server = await listen(identity, async (socket) => {
      const outcome = serveCredSsp(socket, identity, { [USER]: PASSWORD })
      outcomes.push(outcome)
      await outcome
    })
    port = server.port
    close = server.close
  })
  afterAll(() => close?.())

  const outcome = async (): Promise<Outcome | undefined> => outcomes.splice(0).at(-1)

  test('our client comes in, with SPNEGO and without', async () => {
    for (const isSpnego of [false, true]) {
      const socket = await signIn({ port, user: USER, password: PASSWORD, isSpnego })
      socket.destroy()
      expect(await outcome()).toMatchObject({ credentials: { user: USER } })
    }
  })

  describeWithPeers('xfreerdp', XFREERDP_PEERS, () => {
    let screen: Screen

    beforeAll(async () => {
      screen = await startScreen(320, 240)
    })
    afterAll(() => screen?.stop())

    test('comes in, and hands its password over', async () => {
      const done = await authenticateOnly(screen, { port, user: USER, password: PASSWORD, domain: 'CORP' })
      const found = await outcome()
      expect(found, done.stdout + done.stderr).toMatchObject({ credentials: { user: USER, domain: 'CORP' } })
      if (found && 'credentials' in found) expect(found.credentials.password.revealText()).toBe(PASSWORD)
    })

    test('is told that the password is wrong', async () => {
      const done = await authenticateOnly(screen, { port, user: USER, password: 'wrong' })
      expect(done.code, done.stdout + done.stderr).toBe(LOGON_FAILURE)
      expect(await outcome()).toMatchObject({ error: { reason: 'password' } })
    })

    test('somebody in between with another key: the client is told, and hands nothing over', async () => {
      const between = await listen(await createIdentity(), async (socket) => {
        const bastion = await connectTarget(port)
        socket.pipe(bastion).pipe(socket)
        await once(bastion, 'close')
      })
      const login = { port: between.port, user: USER, password: PASSWORD }
      const done = await authenticateOnly(screen, login)
      between.close()
      expect(done.code).not.toBe(0)
      expect(done.stdout + done.stderr).toContain('SEC_E_MESSAGE_ALTERED')
      expect(await outcome()).toMatchObject({ error: { reason: 'altered' } })
    })
  })

  describeWithPeers("MIT's SPNEGO", GSSAPI_PEERS, () => {
    const login = { user: USER, domain: 'CORP', password: PASSWORD }

    test('comes in, and hands its password over', async () => {
      expect(await gssapiClient(port, login)).toEqual({ result: 'in' })
      const found = await outcome()
      expect(found).toMatchObject({ credentials: { user: USER, domain: 'CORP' } })
      if (found && 'credentials' in found) expect(found.credentials.password.revealText()).toBe(PASSWORD)
    })

    test('bound to the certificate of another connection', async () => {
      const refused = await gssapiClient(port, login, true)
      expect(refused).toEqual({ result: 'refused', status: STATUS.MESSAGE_ALTERED })
      expect(await outcome()).toMatchObject({ error: { reason: 'altered' } })
    })

    test('is told that the password is wrong', async () => {
      const refused = await gssapiClient(port, { ...login, password: 'wrong' })
      expect(refused).toEqual({ result: 'refused', status: STATUS.LOGON_FAILURE })
      expect(await outcome()).toMatchObject({ error: { reason: 'password' } })
    })
  })
})
