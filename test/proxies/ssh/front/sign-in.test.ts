/** The front's prompts and messages, with a gate that sends many challenges. */
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { Reader } from '../../../../proxies/ssh/codec/reader.ts'
import { Writer } from '../../../../proxies/ssh/codec/writer.ts'
import { SshFront } from '../../../../proxies/ssh/front/front.ts'
import type { AuthenticateAnswer, AuthenticateRequest, Gate } from '../../../../src/contract/gate.ts'
import { newSshKey } from '../../../../src/host/ssh-keys.ts'
import {
  AUTH,
  authRequest,
  connectToSignIn,
  interactiveAnswer,
  interactiveRequest,
  methodsOf,
  passwordRequest,
  type RawClient,
  textOf,
} from '../../../attacks/raw.ts'

let server: Server
let port: number
let front: SshFront
const asked: AuthenticateRequest['proof'][] = []
const left: string[] = []
const clients: RawClient[] = []

/** Asks for a password, then a code of two digits, then yes. */
function judge(proof: AuthenticateRequest['proof']): AuthenticateAnswer {
  if ('password' in proof && proof.password === 'right') {
    const prompts = [
      { text: 'First digit: ', echo: true },
      { text: 'Second digit: ', echo: false },
    ]
    return {
      result: 'challenge',
      challenge: { id: 'code', title: 'Code', instructions: 'Look it up', prompts },
    }
  }
  if ('answers' in proof && proof.challenge === 'code' && proof.answers.join('') === '42') {
    const prompts = [{ text: 'Sure? ', echo: true }]
    return { result: 'challenge', challenge: { id: 'sure', title: '', instructions: '', prompts } }
  }
  if ('answers' in proof && proof.challenge === 'sure' && proof.answers[0] === 'yes') {
    return { result: 'accepted', identity: { token: 't', user: 'x', displayName: '', hasTarget: true } }
  }
  return { result: 'rejected' }
}

beforeAll(async () => {
  front = new SshFront({
    gate: {
      authenticate: async ({ proof }: AuthenticateRequest) => {
        // No name here is of a person that signs in in a browser.
        if (proof.method === 'browser') return { result: 'rejected' }
        asked.push(proof)
        return judge(proof)
      },
      leave: async ({ identity }: { identity: string }) => {
        left.push(identity)
      },
    } as unknown as Gate,
    hostKeys: [newSshKey('ed25519').private],
    ident: 'Test',
    banner: 'Recorded.\r\n',
    onSignedIn: () => undefined,
  })
  server = createServer((socket) => front.accept(socket)).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => {
  asked.length = 0
  for (const client of clients.splice(0)) client.destroy()
})
afterAll(() => {
  server.close()
})

async function arrive(): Promise<RawClient> {
  const client = await connectToSignIn({ port })
  clients.push(client)
  return client
}

const answersOf = (...answers: string[]): Buffer => {
  const writer = new Writer().byte(AUTH.infoResponse).uint32(answers.length)
  for (const answer of answers) writer.string(answer)
  return writer.finish()
}

/** string name, string instruction, string language, uint32 count, then string prompt, boolean echo (RFC 4256 3.2). */
function questionsIn(payload: Buffer): { texts: string[]; prompts: [string, boolean][] } {
  const reader = new Reader(payload, 'INFO_REQUEST', 1)
  const text = () => Buffer.from(reader.string()).toString()
  const texts = [text(), text()]
  text()
  const prompts = Array.from({ length: reader.uint32() }, (): [string, boolean] => [text(), reader.boolean()])
  return { texts, prompts }
}

describe('keyboard-interactive', () => {
  async function question(client: RawClient) {
    return questionsIn(await client.next(AUTH.infoRequest, AUTH.failure, AUTH.success))
  }

  test('goes on for as many rounds as the gate asks', async () => {
    const client = await arrive()
    client.send(interactiveRequest('x'))
    expect((await question(client)).prompts).toEqual([['Password: ', false]])
    client.send(interactiveAnswer('right'))
    expect(await question(client)).toEqual({
      texts: ['Code', 'Look it up'],
      prompts: [
        ['First digit: ', true],
        ['Second digit: ', false],
      ],
    })
    client.send(answersOf('4', '2'))
    expect((await question(client)).prompts).toEqual([['Sure? ', true]])
    client.send(answersOf('yes'))
    expect((await client.next(AUTH.failure, AUTH.success))[0]).toBe(AUTH.success)
    const method = 'keyboard-interactive'
    expect(asked).toEqual([
      { method, password: 'right' },
      { method, challenge: 'code', answers: ['4', '2'] },
      { method, challenge: 'sure', answers: ['yes'] },
    ])
  })

  test.each([
    ['a wrong answer', ['4', '3'], 2],
    ['too few answers', ['42'], 1],
    ['too many answers', ['4', '2', ''], 1],
    ['no answer', [], 1],
  ])('%s in a later round is a failure, and the next try begins at the first', async (_, answers, times) => {
    const client = await arrive()
    client.send(interactiveRequest('x'))
    await question(client)
    client.send(interactiveAnswer('right'))
    await question(client)
    client.send(answersOf(...answers))
    expect((await client.next(AUTH.failure, AUTH.success, AUTH.infoRequest))[0]).toBe(AUTH.failure)
    expect(asked.length).toBe(times)
    client.send(interactiveRequest('x'))
    expect((await question(client)).prompts).toEqual([['Password: ', false]])
  })

  test('an abandoned round signs no user in, whatever is answered to it later', async () => {
    const client = await arrive()
    client.send(interactiveRequest('x'))
    await question(client)
    client.send(interactiveAnswer('right'))
    await question(client)
    client.send(authRequest('x', 'none'), answersOf('4', '2'), answersOf('yes'))
    expect((await client.next(AUTH.failure, AUTH.success))[0]).toBe(AUTH.failure)
    client.send(authRequest('x', 'none'))
    expect((await client.next(AUTH.failure, AUTH.success))[0]).toBe(AUTH.failure)
    expect(asked.filter((proof) => 'answers' in proof)).toEqual([])
  })

  test('the method password cannot carry a second round: it succeeds in part, and the round follows', async () => {
    const client = await arrive()
    client.send(passwordRequest('x', 'right'))
    const failure = await client.next(AUTH.failure, AUTH.success)
    expect(methodsOf(failure)).toBe('keyboard-interactive')
    // boolean partial success (RFC 4252 5.1)
    expect(failure.at(-1)).toBe(1)
    client.send(interactiveRequest('x'))
    expect((await question(client)).prompts[0]).toEqual(['First digit: ', true])
    client.send(answersOf('4', '2'))
    await question(client)
    client.send(answersOf('yes'))
    expect((await client.next(AUTH.failure, AUTH.success))[0]).toBe(AUTH.success)
  })

  test('after a partial success, a failed password leaves the round open; another user name does not', async () => {
    const client = await arrive()
    client.send(passwordRequest('x', 'right'))
    await client.next(AUTH.failure)
    client.send(passwordRequest('x', 'wrong'))
    const failure = await client.next(AUTH.failure, AUTH.success)
    expect([failure[0], failure.at(-1)]).toEqual([AUTH.failure, 0])
    client.send(interactiveRequest('x'))
    expect((await question(client)).prompts[0]).toEqual(['First digit: ', true])
    const other = await arrive()
    other.send(passwordRequest('x', 'right'))
    await other.next(AUTH.failure)
    other.send(interactiveRequest('y'))
    await other.untilClosed()
    expect(asked.filter((proof) => 'answers' in proof)).toEqual([])
  })

  test('an unanswered challenge is released at the gate when the client disconnects', async () => {
    const client = await arrive()
    client.send(passwordRequest('x', 'right'))
    await client.next(AUTH.failure)
    left.length = 0
    client.destroy()
    await vi.waitFor(() => expect(left).toEqual(['code']))
  })

  test('rounds are counted as tries', async () => {
    const client = await arrive()
    for (let n = 0; n < 3; n++) {
      client.send(interactiveRequest('x'))
      await question(client)
      client.send(interactiveAnswer('right'))
      await question(client)
      client.send(answersOf('4', '3'))
    }
    await client.untilClosed()
    expect(client.received.map(([type]) => type)).not.toContain(AUTH.success)
  })
})

describe('the banner', () => {
  test('comes once, before the first answer', async () => {
    const client = await arrive()
    client.send(authRequest('x', 'none'), authRequest('x', 'none'))
    expect(textOf(await client.next(AUTH.banner))).toBe('Recorded.\r\n')
    await client.next(AUTH.failure)
    await client.next(AUTH.failure)
    expect(client.received).toEqual([])
  })

  test('is another, or none, for connections from then on', async () => {
    front.banner = 'Other.\r\n'
    const other = await arrive()
    other.send(authRequest('x', 'none'))
    expect(textOf(await other.next(AUTH.banner))).toBe('Other.\r\n')
    front.banner = undefined
    const none = await arrive()
    none.send(authRequest('x', 'none'))
    expect((await none.next(AUTH.banner, AUTH.failure))[0]).toBe(AUTH.failure)
    front.banner = 'Recorded.\r\n'
  })
})
