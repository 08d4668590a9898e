/**
 * A crowd of users at their shells, and the target that they are at, in one program of their own: thousands of
 * real clients and servers would need more memory than the broker. It serves the commands of its parent.
 */
import type { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import ssh2, { type AuthContext, type Client, type ClientChannel, type Connection } from 'ssh2'

/** Messages from the parent. */
export type CrowdOrder =
  /** Opens shells until there are `count`, as many `each` of one login after the other. */
  | { order: 'open'; count: number; each: number; port: number; logins: readonly string[]; key: string }
  /** Types a key in each every `everyMs`; 0: no more. */
  | { order: 'type'; everyMs: number }
  /** Closes all of them. */
  | { order: 'close' }

/** Messages to the parent. */
export type CrowdNews =
  | { news: 'listening'; port: number }
  | { news: 'done' }
  | { news: 'failed'; why: string }

/** How often it is looked which shells are due for a key. */
const TYPE_MS = 10
const AT_A_TIME = 8
const PROMPT = 'crowd$ '
const shells: Shell[] = []
let typing: NodeJS.Timeout | undefined
const [hostKey = ''] = process.argv.slice(2)

interface Shell {
  client: Client
  channel: ClientChannel
}

const report = (news: CrowdNews): void => void process.send?.(news)

const server = new ssh2.Server({ hostKeys: [readFileSync(hostKey)] }, (connection: Connection) => {
  connection.on('error', () => undefined)
  connection.on('authentication', (context: AuthContext) => {
    if (context.method === 'password') context.accept()
    else context.reject(['password'])
  })
  connection.on('ready', () => {
    connection.on('session', (accept) => {
      const session = accept()
      session.on('pty', (grant) => grant())
      session.on('shell', (grant) => {
        const channel = grant()
        channel.write(PROMPT)
        channel.on('data', (data: Buffer) => channel.write(data))
      })
    })
  })
})

/** Opens a shell on a terminal; resolves at its prompt. */
function open(port: number, username: string, privateKey: Buffer): Promise<Shell> {
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client()
    client.on('error', reject)
    client.on('close', () => reject(new Error('the connection was closed')))
    client.on('ready', () => {
      client.shell({ term: 'xterm' }, (error, channel) => {
        if (error) reject(error)
        else awaitPrompt(channel, () => resolve({ client, channel }), reject)
      })
    })
    client.connect({ host: '127.0.0.1', port, username, privateKey, readyTimeout: 60_000 })
  })
}

function awaitPrompt(channel: ClientChannel, found: () => void, failed: (error: Error) => void): void {
  let seen = ''
  const look = (data: Buffer): void => {
    seen += data.toString('latin1')
    if (!seen.includes(PROMPT)) return
    channel.off('data', look)
    // Later data is read and discarded.
    channel.resume()
    found()
  }
  channel.on('data', look)
  channel.on('close', () => failed(new Error(`a shell was closed: ${seen}`)))
}

async function openAll({ count, each, port, logins, key }: CrowdOrder & { order: 'open' }): Promise<void> {
  const privateKey = readFileSync(key)
  let next = shells.length
  const worker = async (): Promise<void> => {
    while (next < count) shells.push(await open(port, logins[Math.floor(next++ / each)]!, privateKey))
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, worker))
}

/** Types keys one shell after the other, as many at a time as are due. */
async function type({ everyMs }: CrowdOrder & { order: 'type' }): Promise<void> {
  clearInterval(typing)
  if (everyMs === 0) return
  const begin = performance.now()
  let typed = 0
  typing = setInterval(() => {
    const due = ((performance.now() - begin) / everyMs) * shells.length
    for (; typed < due; typed++) shells[typed % shells.length]!.channel.write('x')
  }, TYPE_MS)
}

async function closeAll(): Promise<void> {
  const closed = shells.splice(0).map(
    ({ client }) =>
      new Promise<void>((resolve) => {
        client.on('close', () => resolve())
        client.end()
      }),
  )
  await Promise.all(closed)
}

process.on('message', (order: CrowdOrder) => {
  const work = () => {
    if (order.order === 'open') return openAll(order)
    return order.order === 'type' ? type(order) : closeAll()
  }
  work().then(
    () => report({ news: 'done' }),
    (error: unknown) => report({ news: 'failed', why: String(error) }),
  )
})
process.on('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () =>
  report({ news: 'listening', port: (server.address() as AddressInfo).port }),
)
