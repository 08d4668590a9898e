/** The command line of a network device, over SSH or Telnet. */
import { Buffer } from 'node:buffer'
import type { ChangeTarget, SignIn } from '../../src/contract/change.ts'
import { MalformedError } from '../bytes/malformed.ts'
import { TelnetEndpoint } from '../telnet/codec/endpoint.ts'
import { Connection } from './connection.ts'
import { ChangeError, said } from './plugin.ts'
import { ScreenTalk } from './screen-talk.ts'
import { textOf } from './secrets.ts'
import { SshTarget } from './ssh-target.ts'

/** Opens the command line for the work, and closes it. Over SSH the account is signed in already. */
export async function atDevice<T>(
  target: ChangeTarget,
  as: SignIn,
  signal: AbortSignal,
  secrets: readonly string[],
  work: (talk: ScreenTalk) => Promise<T>,
): Promise<T> {
  const protocol = target.protocol ?? textOf(target.parameters, 'transport') ?? 'SSH'
  return protocol === 'TELNET'
    ? await overTelnet(target, signal, secrets, work)
    : await overSsh(target, as, signal, secrets, work)
}

async function overSsh<T>(
  target: ChangeTarget,
  as: SignIn,
  signal: AbortSignal,
  secrets: readonly string[],
  work: (talk: ScreenTalk) => Promise<T>,
): Promise<T> {
  const opened = await SshTarget.open(target, as, signal)
  try {
    const channel = await opened.shell()
    const talk = new ScreenTalk((text) => channel.write(text), secrets)
    const isLate = () => signal.aborted
    channel.on('data', (bytes: Buffer) => talk.received(bytes))
    channel.stderr.on('data', (bytes: Buffer) => talk.received(bytes))
    channel.on('error', () => undefined)
    channel.once('close', () => talk.fail(closed(isLate())))
    signal.addEventListener('abort', () => talk.fail(closed(true)), { once: true })
    return await work(talk)
  } finally {
    opened.close()
  }
}

function closed(isLate: boolean): ChangeError {
  return isLate
    ? new ChangeError('timeout', 'the target did not finish in time')
    : new ChangeError('unreachable', 'the target closed the connection early')
}

function overTelnet<T>(
  target: ChangeTarget,
  signal: AbortSignal,
  secrets: readonly string[],
  work: (talk: ScreenTalk) => Promise<T>,
): Promise<T> {
  return Connection.during(
    target,
    signal,
    (error) => new ChangeError('unclear', said(error.message, ...secrets)),
    (connection) => {
      const { socket } = connection
      const talk = new ScreenTalk((text) => endpoint.send(Buffer.from(text, 'latin1')), secrets)
      const write = (bytes: Uint8Array) => socket.write(bytes)
      const endpoint = new TelnetEndpoint({
        role: 'client',
        terminalType: 'dumb',
        windowSize: { columns: 200, rows: 24 },
        now: () => performance.now(),
        write,
        writeUrgent: write,
        visitor: { data: (bytes) => talk.received(bytes), command: () => undefined },
      })
      socket.on('data', (bytes) => {
        try {
          endpoint.receive(bytes)
        } catch (error) {
          if (!(error instanceof MalformedError)) throw error
          connection.fail(new ChangeError('unexpected_answer', said(error.message)))
        }
      })
      endpoint.start()
      return work(talk)
    },
  )
}
