/** A broker with a crowd of users at it: see crowd.ts. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Broker, startBroker } from '../peers/broker.ts'
import { generateKey, type SshKey } from '../peers/keys.ts'
import { provision } from '../peers/provision.ts'
import { until } from '../until.ts'
import type { CrowdNews, CrowdOrder } from './crowd.ts'

/** Sessions of one user, below the broker's limit. */
const PER_USER = 400
const END_MS = 120_000

export class CrowdedBroker {
  readonly broker: Broker
  readonly #crowd: Crowd
  readonly #folder: string
  readonly #key: SshKey
  readonly #logins: string[] = []

  private constructor(broker: Broker, crowd: Crowd, folder: string, key: SshKey) {
    this.broker = broker
    this.#crowd = crowd
    this.#folder = folder
    this.#key = key
  }

  /** Starts a broker with as many session workers, and a crowd without a session. */
  static async start(workers: number): Promise<CrowdedBroker> {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
    const hostKey = await generateKey(folder)
    const key = await generateKey(folder)
    const crowd = startCrowd(hostKey.path)
    try {
      const broker = await startBroker({ asInstalled: true, config: { workers } })
      return new CrowdedBroker(broker, crowd, folder, key)
    } catch (error) {
      crowd.stop()
      rmSync(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** Opens shells until there are `count`. */
  async open(count: number): Promise<void> {
    while (this.#logins.length < count / PER_USER) {
      const user = this.#logins.length
      const { login } = await provision(this.broker, {
        user: `ops${user}`,
        device: `srv${user}`,
        port: await this.#crowd.port,
        account: 'crowd',
        credentials: [{ type: 'password', password: 'of the crowd' }],
        subprotocols: ['SSH_SHELL'],
        sshPublicKeys: [this.#key.publicKey],
      })
      this.#logins.push(login)
    }
    const { ssh: port } = this.broker.ports
    const key = this.#key.path
    await this.#crowd.order({ order: 'open', count, each: PER_USER, port, logins: this.#logins, key })
  }

  /** Types a key in each shell every `everyMs`, spread over that time; 0: no more. */
  async type(everyMs: number): Promise<void> {
    await this.#crowd.order({ order: 'type', everyMs })
  }

  /** Closes all shells; resolves when their sessions have ended. */
  async close(): Promise<void> {
    await this.#crowd.order({ order: 'close' })
    await until(
      'the end of all sessions',
      async () => {
        const rows = await this.broker.must<unknown[]>('GET', '/sessions?status=current')
        return rows.length === 0 || undefined
      },
      END_MS,
    )
  }

  async stop(): Promise<void> {
    this.#crowd.stop()
    await this.broker.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

type Crowd = ReturnType<typeof startCrowd>

/** Starts the crowd's program; orders run one at a time. */
function startCrowd(hostKey: string) {
  const child = fork(join(import.meta.dirname, 'crowd.ts'), [hostKey], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const news = async (): Promise<CrowdNews> => {
    const [message] = (await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => [{ news: 'failed', why: 'the crowd has ended' }]),
    ])) as [CrowdNews]
    if (message.news === 'failed') throw new Error(message.why)
    return message
  }
  const port = news().then((message) => (message.news === 'listening' ? message.port : 0))
  return {
    port,
    async order(order: CrowdOrder): Promise<void> {
      child.send(order)
      await news()
    },
    stop: () => child.disconnect(),
  }
}
