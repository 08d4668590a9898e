/**
 * `sallyport login`: signs in, by whatever rounds that takes, and writes an SSH certificate beside the user's key. ssh, and
 * what rests on it, use both without any more questions until the certificate ends.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { secondsOption } from './approvals.ts'
import { type Command, expectNoWords, type Invocation, textOption, UsageError } from './command.ts'
import { forgetSignIn, keepSignIn } from './kept-sign-in.ts'
import { plain } from './output.ts'
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
    [
      'login --url URL --user NAME --keep',
      'sign in for the commands with --url on this machine, until a quarter of an hour without one; --end: sign out',
    ],
  ],
  options: {
    ...SIGN_IN_OPTIONS,
    key: { type: 'string' },
    duration: { type: 'string' },
    keep: { type: 'boolean' },
    end: { type: 'boolean' },
  },
  async run(invocation) {
    expectNoWords('login', invocation.words)
    if (invocation.options['end'] === true) return await end(invocation)
    const user = userOption(invocation)
    if (invocation.options['keep'] === true) return await keep(invocation, user)
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

/** Stays signed in for the commands after this one. */
async function keep(invocation: Invocation, user: string): Promise<number> {
  if (textOption(invocation, 'key') !== undefined || textOption(invocation, 'duration') !== undefined)
    throw new UsageError('--keep makes no certificate: give it without --key and --duration')
  const remote = new Remote(invocation, process.env, 'sign-in')
  await signIn(remote, user)
  const { signIn: kept } = remote
  if (!kept) throw notOfApi(200)
  keepSignIn({ ...kept, user })
  process.stdout.write(`signed in as ${plain(user)}; sallyport login --end signs out\n`)
  return 0
}

/** Ends the sign-in that was kept. */
async function end(invocation: Invocation): Promise<number> {
  const remote = new Remote(invocation, {
    ...process.env,
    SALLYPORT_API_KEY: undefined,
    SALLYPORT_API_KEY_FILE: undefined,
  })
  forgetSignIn()
  await remote.delete('/session')
  return 0
}

/** Signs in in a browser or by a password, and by further rounds. @throws RemoteError */
async function signIn(remote: Remote, user: string): Promise<void> {
  const prompts = new Prompts()
  try {
    let challenge = await begun(remote, user, prompts)
    for (let round = 0; challenge && round < MAX_ROUNDS; round++) {
      prompts.show(challenge.message)
      const answers: string[] = []
      for (const { text, echo } of challenge.prompts) answers.push(await prompts.ask(text, echo))
      challenge = await challengeOf(remote.post('/session', { challenge: challenge.id, answers }))
    }
    if (challenge) throw new Error('the broker does not end its questions')
  } finally {
    prompts.close()
  }
}

/** Begins in a browser; the broker refuses that for names that have a password. */
async function begun(remote: Remote, user: string, prompts: Prompts): Promise<Challenge | undefined> {
  try {
    return await challengeOf(remote.post('/session', { user }))
  } catch (error) {
    if (!(error instanceof RemoteError) || error.code !== 'invalid_field') throw error
    const password = await prompts.ask('Password: ', false)
    return await challengeOf(remote.post('/session', { user, password }))
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
