/** Python's SSH libraries, paramiko and asyncssh, as clients. */
import { join } from 'node:path'
import type { Home, Login } from './home.ts'
import { run } from './process.ts'
import { findProgram, type PythonModule } from './program.ts'

export type PythonStep =
  | { exec: string; input?: string }
  /** Sends the text to a shell on a terminal and reads to the end, so the text should end it. */
  | { shell: string }
  | { put: [local: string, remote: string] }
  | { get: [remote: string, local: string] }
  | { list: string }

/** One for each step that was reached; the last has `error` if a step, or the login, failed. */
export interface PythonResult {
  code?: number | null
  stdout?: string
  stderr?: string
  ok?: true
  names?: string[]
  error?: string
}

/**
 * Runs the steps over one connection; `agent`: the socket of an agent to forward; `tickets`: environment with tickets of
 * Kerberos, which paramiko then shows and forwards. Rejects only if Python
 * itself fails.
 */
export async function pythonClient(
  library: Extract<PythonModule, 'paramiko' | 'asyncssh'>,
  home: Home,
  login: Login,
  steps: PythonStep[],
  agent?: string,
  tickets?: NodeJS.ProcessEnv,
): Promise<PythonResult[]> {
  const { port, user, password, identity } = login
  const input = JSON.stringify({
    port,
    user,
    password,
    identity,
    agent,
    tickets: tickets !== undefined,
    steps,
  })
  const script = join(import.meta.dirname, 'python_client.py')
  const done = await run(findProgram('python3'), [script, library], {
    env: { ...home.env(), ...(agent !== undefined && { SSH_AUTH_SOCK: agent }), ...tickets },
    input,
    timeout: 300_000,
  })
  if (done.code !== 0) throw new Error(`${library}: ${done.stderr}`)
  return JSON.parse(done.stdout) as PythonResult[]
}

export interface AnswersResult {
  /** Methods that remain after the password. */
  partial: string[]
  /** The instructions and the prompts of each round. */
  prompts: string[][]
  code?: number
  stdout?: string
  stderr?: string
  error?: string
}

/**
 * Signs in by paramiko and runs a command: by password first if the login has one, then by the answers of
 * each round.
 */
export async function paramikoAnswers(
  home: Home,
  { port, user, password }: Login,
  rounds: string[][],
  command = 'id -un',
): Promise<AnswersResult> {
  const script = join(import.meta.dirname, 'python_answers.py')
  const done = await run(findProgram('python3'), [script], {
    env: home.env(),
    input: JSON.stringify({ port, user, password, rounds, command }),
    timeout: 300_000,
  })
  if (done.code !== 0) throw new Error(`paramiko: ${done.stderr}`)
  return JSON.parse(done.stdout) as AnswersResult
}
