/**
 * Changers as processes in the cage of session workers: what a target sends is parsed there, without the database and the keys.
 * They are started when there is work, and ended when there is none.
 */
import { Buffer } from 'node:buffer'
import { type ChildProcess, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { cleanValue } from '../audit/events/clean.ts'
import type { SpawnCommand } from '../confine/command.ts'
import type { CageReport } from '../confine/report.ts'
import { CageReportSchema } from '../confine/report-schema.ts'
import {
  CHANGE_ERRORS,
  CHANGER_VERSION,
  type ChangeJob,
  type ChangeTarget,
  type FromChanger,
  type ToChanger,
} from '../contract/change.ts'
import { MessageReader } from '../contract/message-reader.ts'
import { encodeMessage } from '../contract/wire.ts'
import { type Changer, ChangerError } from './changer.ts'

/** Processes, and jobs of each at a time. */
const MAX_PROCESSES = 4
const JOBS_EACH = 8
/** Milliseconds for one job, as the changer is told, and after which the changer itself counts as hanging. */
const JOB_MS = 45_000
const MARGIN_MS = 10_000
const IDLE_MS = 60_000
/** Bytes of one message of a changer, and of its report of a fault. */
const MAX_MESSAGE_TEXT = 48 * 1024
const MAX_REPORT = 2_048
/** Reports of one process that are logged. */
const MAX_REPORTS = 16
/** Characters of a host key in base64, and questions about one of each job. */
const MAX_KEY_TEXT = 32 * 1024
const MAX_QUESTIONS = 8

const From = Type.Union([
  Type.Object(
    { type: Type.Literal('ready'), version: Type.Integer(), cage: CageReportSchema },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      type: Type.Literal('host_key'),
      id: Type.Integer(),
      question: Type.Integer(),
      key: Type.String({ maxLength: MAX_KEY_TEXT }),
    },
    { additionalProperties: false },
  ),
  Type.Object({ type: Type.Literal('faulted') }, { additionalProperties: false }),
  Type.Object(
    {
      type: Type.Literal('done'),
      id: Type.Integer(),
      verdict: Type.Optional(Type.Union([Type.Literal('valid'), Type.Literal('invalid')])),
    },
    { additionalProperties: false },
  ),
  Type.Object(
    {
      type: Type.Literal('failed'),
      id: Type.Integer(),
      code: Type.Union(CHANGE_ERRORS.map((code) => Type.Literal(code))),
      message: Type.String({ maxLength: 2_000 }),
    },
    { additionalProperties: false },
  ),
])

export interface ProcessesOptions {
  /** Returns how a changer is started; its messages go by this descriptor. */
  command: () => SpawnCommand
  descriptor: number
  warn: (message: string, details: object) => void
  /** Called with the bounds that hold a process, as it reports them. */
  onBegun?: (report: CageReport) => void
  /** Returns why the target's host key (RFC 4253 6.6) is not trusted, or undefined if it is. */
  judge?: (target: ChangeTarget, key: Buffer) => Promise<string | undefined>
  jobMs?: number
  idleMs?: number
}

/** The part of a plugin's answer that the broker uses. */
type Answer = 'valid' | 'invalid' | undefined

export class ChangerProcesses implements Changer {
  readonly #options: ProcessesOptions
  readonly #processes = new Set<ChangerProcess>()
  readonly #queue: (() => void)[] = []
  #isClosed = false

  constructor(options: ProcessesOptions) {
    this.#options = options
  }

  async verify(...[plugin, target, as]: Parameters<Changer['verify']>) {
    const verdict = await this.#do({ work: 'verify', plugin, target, as })
    if (verdict === undefined) throw new ChangerError('unclear', 'the changer returned no verdict')
    return verdict
  }

  async change(...[plugin, target, change]: Parameters<Changer['change']>): Promise<void> {
    await this.#do({ work: 'change', plugin, target, change })
  }

  async retire(...[plugin, target, retired]: Parameters<Changer['retire']>): Promise<void> {
    await this.#do({ work: 'retire', plugin, target, retired })
  }

  /** Ends all processes: their jobs fail as `unclear`. */
  close(): void {
    this.#isClosed = true
    for (const one of this.#processes) one.end('ends: the bastion is stopping')
    for (const next of this.#queue.splice(0)) next()
  }

  async #do(job: ChangeJob): Promise<Answer> {
    for (;;) {
      if (this.#isClosed) throw new ChangerError('unclear', 'the bastion is stopping')
      const process = this.#free()
      if (process) {
        try {
          return await process.run(job)
        } finally {
          this.#queue.shift()?.()
        }
      }
      await new Promise<void>((resolve) => this.#queue.push(resolve))
    }
  }

  /** Returns the process with the fewest jobs, a new one if all have some; undefined if all are full. */
  #free(): ChangerProcess | undefined {
    const [least] = [...this.#processes].filter((one) => !one.isFaulted).sort((a, b) => a.jobs - b.jobs)
    const isFull = this.#processes.size >= MAX_PROCESSES
    if (least && (least.jobs === 0 || isFull)) return least.jobs < JOBS_EACH ? least : undefined
    if (isFull) return undefined
    const made = new ChangerProcess(this.#options, () => {
      this.#processes.delete(made)
      this.#queue.shift()?.()
    })
    this.#processes.add(made)
    return made
  }
}

interface Waiting {
  target: ChangeTarget
  questions: number
  resolve: (answer: Answer) => void
  reject: (error: ChangerError) => void
  timer: NodeJS.Timeout
}

class ChangerProcess {
  readonly #options: ProcessesOptions
  readonly #child: ChildProcess
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  readonly #onEnded: () => void
  #next = 1
  #idle: NodeJS.Timeout | undefined
  #hasEnded = false
  #reports = MAX_REPORTS
  /** It does the jobs that it has, and gets no other one. */
  isFaulted = false

  constructor(options: ProcessesOptions, onEnded: () => void) {
    this.#options = options
    this.#onEnded = onEnded
    const { descriptor } = options
    const command = options.command()
    const stdio: ('ignore' | 'pipe')[] = ['ignore', 'ignore', 'pipe']
    while (stdio.length <= descriptor) stdio.push(stdio.length === descriptor ? 'pipe' : 'ignore')
    this.#child = spawn(command.file, command.arguments, {
      stdio,
      env: command.env,
      cwd: '/',
      ...(command.uid !== undefined && { uid: command.uid }),
      ...(command.gid !== undefined && { gid: command.gid }),
    })
    this.#child.on('error', (error) => this.end(`could not be started: ${error.message}`))
    this.#child.once('exit', (code, signal) => this.end(`ended (${signal ?? code})`))
    this.#child.stderr?.on('data', (text: Buffer) => {
      if (this.#reports-- <= 0) return
      const said = cleanValue(text.toString('utf8', 0, MAX_REPORT))
      options.warn('a changer reports a fault', { pid: this.#child.pid, said })
    })
    this.#socket = this.#child.stdio[descriptor] as Socket
    this.#socket.on('error', () => undefined)
    const reader = new MessageReader(MAX_MESSAGE_TEXT)
    this.#socket.on('data', (piece: Buffer) => {
      try {
        for (const message of reader.read(piece)) this.#take(message)
      } catch (error) {
        this.end(`broke the rules of its messages: ${(error as Error).message}`)
      }
    })
    this.#send({ type: 'begin', version: CHANGER_VERSION })
  }

  get jobs(): number {
    return this.#waiting.size
  }

  run(job: ChangeJob): Promise<Answer> {
    clearTimeout(this.#idle)
    const timeoutMs = this.#options.jobMs ?? JOB_MS
    const id = this.#next++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.end('did not answer in time'), timeoutMs + MARGIN_MS)
      this.#waiting.set(id, { target: job.target, questions: 0, resolve, reject, timer })
      this.#send({ type: 'job', id, job, timeoutMs })
    })
  }

  end(reason: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#idle)
    this.#child.kill('SIGKILL')
    this.#socket.destroy()
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer)
      reject(new ChangerError('unclear', `the changer ${cleanValue(reason)}`))
    }
    this.#waiting.clear()
    this.#onEnded()
  }

  #send(message: ToChanger): void {
    for (const part of encodeMessage(message)) this.#socket.write(part)
  }

  #take(given: unknown): void {
    if (!Value.Check(From, given)) throw new Error('an unknown message')
    const message = given as FromChanger
    if (message.type === 'ready') {
      if (message.version !== CHANGER_VERSION) throw new Error('it is of another version')
      this.#options.onBegun?.(message.cage)
      return
    }
    if (message.type === 'faulted') {
      this.isFaulted = true
      if (this.#waiting.size === 0) this.end('had a fault')
      return
    }
    const waiting = this.#waiting.get(message.id)
    // It may have been given up meanwhile.
    if (!waiting) return
    if (message.type === 'host_key') {
      if (++waiting.questions > MAX_QUESTIONS) throw new Error('too many questions about host keys')
      void this.#judge(waiting.target, message)
      return
    }
    this.#waiting.delete(message.id)
    clearTimeout(waiting.timer)
    if (this.#waiting.size === 0) {
      // Ends it after the answer below.
      if (this.isFaulted) setImmediate(() => this.end('had a fault'))
      this.#idle = setTimeout(() => this.end('has nothing to do'), this.#options.idleMs ?? IDLE_MS)
      this.#idle.unref()
    }
    if (message.type === 'done') waiting.resolve(message.verdict)
    else waiting.reject(new ChangerError(message.code, cleanValue(message.message)))
  }

  async #judge(target: ChangeTarget, { id, question, key }: Extract<FromChanger, { type: 'host_key' }>) {
    const { judge } = this.#options
    let refusal: string | undefined = 'the bastion judges no host keys here'
    try {
      if (judge) refusal = await judge(target, Buffer.from(key, 'base64'))
    } catch (error) {
      refusal = `the host key could not be judged: ${cleanValue((error as Error).message)}`
    }
    if (!this.#hasEnded)
      this.#send({ type: 'judged', id, question, ...(refusal !== undefined && { refusal }) })
  }
}
