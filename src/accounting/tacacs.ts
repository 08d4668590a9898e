/** Accounting at TACACS+ servers (RFC 8907 7): sessions as start and stop, and commands as they were recorded. */

import type { Buffer } from 'node:buffer'
import { ServerOrder } from '../identity/methods/servers.ts'
import {
  type ACCOUNTING_FLAGS,
  type Argument,
  accountingRequest,
  type Caller,
  MAX_SHORT,
  readAccountingReply,
} from '../identity/methods/tacacs/messages.ts'
import { PORT_NAME, type TacacsSettings, tacacsServers } from '../identity/methods/tacacs/method.ts'
import type { TacacsServer } from '../identity/methods/tacacs/server.ts'
import { shown } from '../identity/methods/words.ts'
import type { AccountingRecord, Octets } from './record.ts'
import { type AccountingSender, firstOf, plain, RecordRefused, short } from './sender.ts'

/** Parts of one command line: `cmd`, and up to so many `cmd-arg`. The log's limit of a line needs nine. */
const MAX_PARTS = 12
const MAX_SAID = 200

/** TACACS+ has none of a client's own start and end. */
export type Reported = Exclude<AccountingRecord, { kind: 'on' | 'off' }>

const FLAGS = {
  start: 'start',
  interim: 'watchdog',
  stop: 'stop',
  command: 'stop',
} as const satisfies Record<Reported['kind'], keyof typeof ACCOUNTING_FLAGS>

export class TacacsSender implements AccountingSender {
  readonly kinds: readonly AccountingRecord['kind'][]
  readonly #servers: TacacsServer[]
  readonly #order: ServerOrder<TacacsServer>

  constructor({ auth, secrets, now }: Pick<TacacsSettings, 'auth' | 'secrets' | 'now'>) {
    const { accounting, commandAccounting } = auth.options
    this.kinds = [
      ...(accounting ? (['start', 'interim', 'stop'] as const) : []),
      ...(commandAccounting ? (['command'] as const) : []),
    ]
    this.#servers = tacacsServers(auth, secrets.sharedSecret)
    this.#order = new ServerOrder(this.#servers, now)
  }

  async reach(signal: AbortSignal): Promise<void> {
    await firstOf(this.#order, (server) => server.reach(signal), signal)
  }

  async send(record: AccountingRecord, signal: AbortSignal): Promise<void> {
    if (!isReported(record)) throw new RecordRefused(`TACACS+ has no record of ${record.kind}`)
    const body = bodyOf(record)
    const { status, message } = await firstOf(
      this.#order,
      async (server) => readAccountingReply(await server.ask('accounting', 0, body, signal)),
      signal,
    )
    if (status !== 'success')
      throw new RecordRefused(`the server answers ${status.toUpperCase()}: ${shown(message, MAX_SAID)}`)
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.close()
  }
}

/** Returns the body of a request. */
export function bodyOf(record: Reported): Buffer {
  return accountingRequest(FLAGS[record.kind], callerOf(record), argumentsOf(record))
}

const isReported = (record: AccountingRecord): record is Reported =>
  record.kind !== 'on' && record.kind !== 'off'

function callerOf({ user, source }: AccountingRecord): Caller {
  return { user: short(plain(user), MAX_SHORT), port: PORT_NAME, source: short(plain(source), MAX_SHORT) }
}

/** Returns the arguments of a record; times are in seconds since the epoch (RFC 8907 8.3). */
function argumentsOf(record: Reported): Argument[] {
  const { session, time, protocol, target } = record
  const named: [string, string | number][] = [
    ['task_id', session],
    ['timezone', 'UTC'],
    ['service', record.kind === 'command' ? 'shell' : 'connection'],
    ['protocol', protocol],
    ['target', target],
  ]
  switch (record.kind) {
    case 'start':
      named.push(['start_time', seconds(time)])
      break
    case 'interim':
      named.push(['start_time', seconds(time - record.elapsed)], ['elapsed_time', seconds(record.elapsed)])
      if (record.octets) named.push(...octetsOf(record.octets))
      break
    case 'stop': {
      const { elapsed, result, reason } = record
      if (elapsed !== undefined)
        named.push(['start_time', seconds(time - elapsed)], ['elapsed_time', seconds(elapsed)])
      named.push(['stop_time', seconds(time)], ...octetsOf(record), ['result', result], ['reason', reason])
      break
    }
    case 'command': {
      const [first = '', ...rest] = parts(plain(record.command))
      named.push(['start_time', seconds(time)], ['result', record.result], ['cmd', first])
      for (const part of rest) named.push(['cmd-arg', part])
    }
  }
  return named
    .filter(([, value]) => value !== '')
    .map(([name, value]) => ({
      name,
      value: short(plain(String(value)), MAX_SHORT - name.length - 1),
      isMandatory: true,
    }))
}

const octetsOf = ({ bytesIn, bytesOut }: Octets): [string, number][] => [
  ['bytes_in', bytesIn],
  ['bytes_out', bytesOut],
  ['bytes', bytesIn + bytesOut],
]

const seconds = (ms: number): number => Math.max(0, Math.floor(ms / 1000))

/** Returns a line in pieces that fit into arguments. */
function parts(line: string): string[] {
  const all: string[] = []
  for (let rest = line; rest !== '' && all.length < MAX_PARTS; ) {
    const part = short(rest, MAX_SHORT - 'cmd-arg='.length)
    all.push(part)
    rest = rest.slice(part.length)
  }
  return all
}
