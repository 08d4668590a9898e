/**
 * `sallyport login`: signs in, by whatever rounds that takes, and writes an SSH certificate beside the user's key. ssh, and
 * what rests on it, use both without any more questions until the certificate ends.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { secondsOption } from './approvals.ts'
import { type Command, expectNoWords, type Invocation, textOption, UsageError } from './command.ts'
import { Prompts } from './prompts.ts'
import { notOfApi, Remote, RemoteError, SIGN_IN_OPTIONS, userOption } from './remote.ts'

/** Keys that ssh tries by itself, in its order of preference. */
const DEFAULT_KEYS = ['id_ed25519', 'id_ed25519_sk', 'id_ecdsa', 'id_ecdsa_sk', 'id_rsa']
const MAX_ROUNDS = 32

interface Challenge {
  id: string
  message: string
  prompts: { text: string; echo: boolean }[]
}

export const login: Command = {
  synopsis: [
    [
      'login --url URL --user NAME [--key FILE] [--duration S]',
      'sign in, and write a certificate for an SSH key (FILE-cert.pub): ssh then asks nothing for hours',
    ],
  ],
  options: { ...SIGN_IN_OPTIONS, key: { type: 'string' }, duration: { type: 'string' } },
  async run(invocation) {
    expectNoWords('login', invocation.words)
    const user = userOption(invocation)
    const { file, line } = publicKey(invocation)
    const duration = secondsOption(invocation, 'duration')
    const remote = new Remote(invocation, process.env, 'sign-in')
    await signIn(remote, user)
    try {
      const body = { public_key: line, ...(duration !== undefined && { duration }) }
      const { certificate, end } = shown(await remote.post('/session/certificate', body))
      const path = `${file}-cert.pub`
      // ssh may read the file meanwhile.
      writeFileSync(`${path}.new`, `${certificate} ${user}\n`, { mode: 0o600 })
      renameSync(`${path}.new`, path)
      process.stdout.write(`${path}: valid until ${end}\n`)
    } finally {
      await remote.delete('/session')
    }
    return 0
  },
}

/** Signs in by a password, and what further rounds ask for. @throws RemoteError */
async function signIn(remote: Remote, user: string): Promise<void> {
  const prompts = new Prompts()
  try {
    let body: object = { user, password: await prompts.ask('Password: ', false) }
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const challenge = await challengeOf(remote.post('/session', body))
      if (!challenge) return
      prompts.show(challenge.message)
      const answers: string[] = []
      for (const { text, echo } of challenge.prompts) answers.push(await prompts.ask(text, echo))
      body = { challenge: challenge.id, answers }
    }
    throw new Error('the broker does not end its questions')
  } finally {
    prompts.close()
  }
}

/** Returns the next round, or undefined if the sign-in was accepted. */
async function challengeOf(answer: Promise<unknown>): Promise<Challenge | undefined> {
  try {
    await answer
    return undefined
  } catch (error) {
    if (!(error instanceof RemoteError) || error.code !== 'second_factor_required') throw error
    const { challenge } = error.body as { challenge?: Challenge }
    if (typeof challenge?.id !== 'string' || !Array.isArray(challenge.prompts)) throw notOfApi(error.status)
    return challenge
  }
}

/** Returns the key's file, without `.pub`, and the line of its public half. @throws UsageError, Error */
function publicKey(invocation: Invocation): { file: string; line: string } {
  const given = textOption(invocation, 'key')
  const files = given === undefined ? DEFAULT_KEYS.map((name) => join(homedir(), '.ssh', name)) : [given]
  for (const file of files.map((name) => name.replace(/\.pub$/, ''))) {
    const line = lineOf(`${file}.pub`, given !== undefined)
    if (line !== undefined) return { file, line }
  }
  throw new UsageError(
    'there is no SSH key in ~/.ssh: make one by ssh-keygen -t ed25519, or name one by --key FILE',
  )
}

function lineOf(path: string, isNamed: boolean): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !isNamed) return undefined
    throw new Error(`${path}: ${code ?? 'it cannot be read'}; ssh-keygen -y -f KEY > KEY.pub makes it`)
  }
}

function shown(answer: unknown): { certificate: string; end: string } {
  const { certificate, end } = (answer ?? {}) as Record<string, unknown>
  if (typeof certificate !== 'string' || !/^[!-~]+ [!-~]+$/.test(certificate) || typeof end !== 'string')
    throw notOfApi(201)
  return { certificate, end }
}
