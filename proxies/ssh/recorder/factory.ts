/** Chooses the recorder for a channel's main request. */
import type { ChannelOpen } from '../../../recordings/container/frames.ts'
import { displayText } from '../../bytes/text.ts'
import type { ExecCommand } from '../codec/classify.ts'
import { ScriptWatch } from '../commands/script.ts'
import { CommandWatch } from '../commands/watch.ts'
import { ChannelFrames } from './frames.ts'
import { Guard } from './guard.ts'
import { HiddenSftp } from './hidden-sftp.ts'
import type { RecorderOptions, Terminal } from './options.ts'
import type { ChannelRecorder } from './recorder.ts'
import { ScpRecorder } from './scp.ts'
import { SftpRecorder } from './sftp.ts'
import { StreamRecorder } from './stream.ts'
import { TerminalRecorder } from './terminal.ts'
import { WholeRecorder } from './whole.ts'

/** The granted program. `command`: the exact bytes sent to the target. */
export type Recorded =
  | { kind: 'shell' }
  | { kind: 'sftp' }
  /** A subsystem that the connection policy allows by name. */
  | { kind: 'subsystem'; name: string }
  | { kind: 'exec'; command: Uint8Array; classified: ExecCommand }

/** Bytes of a command in one frame; a longer command continues in further command frames. */
const COMMAND_PIECE = 8192

/**
 * Begins the channel in the recording and returns its recorder. A channel with a terminal is recorded as a
 * terminal, whatever runs in it: programs prompt for passwords there, and a terminal would garble protocol
 * streams anyway.
 */
export function recorderFor(recorded: Recorded, options: RecorderOptions): ChannelRecorder {
  const frames = new ChannelFrames(options.sink, options.channel, options.hashing)
  const kind = kindOf(recorded, options.terminal)
  const command = commandOf(recorded)
  frames.open({
    kind,
    subprotocol: options.right,
    ...(command[0] !== undefined && { command: command[0] }),
    ...(options.terminal !== undefined && { terminal: options.terminal }),
  })
  for (const line of command.slice(1)) frames.command({ line })
  return inspector(recorded, frames, options)
}

function inspector(recorded: Recorded, frames: ChannelFrames, options: RecorderOptions): ChannelRecorder {
  const { events, quota, changes } = options
  if (options.terminal !== undefined && recorded.kind !== 'sftp')
    return new TerminalRecorder(
      frames,
      events,
      options.terminalQuota,
      commandsOf(options.terminal, frames, options),
    )
  if (recorded.kind === 'sftp')
    return new Guard(new SftpRecorder(frames, events, quota, changes), frames, events)
  const classified = recorded.kind === 'exec' ? recorded.classified : undefined
  switch (classified?.kind) {
    case 'scp':
      return new Guard(new ScpRecorder(frames, quota, classified, options), frames, events)
    case 'rsync':
    case 'git':
      return new StreamRecorder(frames, events, quota, classified)
    default: {
      const whole = new WholeRecorder(frames, events, quota, scriptOf(recorded, options))
      return options.maySftp ? whole : new Guard(new HiddenSftp(whole), frames, events)
    }
  }
}

function commandsOf(terminal: Terminal, frames: ChannelFrames, options: RecorderOptions): CommandWatch {
  const { events, commandRules, now } = options
  return new CommandWatch({
    ...terminal,
    rules: commandRules,
    now,
    onCommand: (command) => {
      const { line, confidence, reason, rule, kills, isRefused } = command
      frames.command({
        line,
        confidence,
        ...(reason !== undefined && { reason }),
        ...(rule !== undefined && { rule }),
        ...((kills === 'before' || isRefused) && { denied: true }),
      })
      events.onCommand(command)
    },
    onAdmit: events.onAdmit,
    ask: (question, answered) => events.ask(question, answered),
    onAnswered: (isAccepted, message) => events.onAnswered(isAccepted, message),
  })
}

/** A shell reads commands from its input, with or without a terminal. */
function scriptOf(recorded: Recorded, { commandRules, events }: RecorderOptions): ScriptWatch | undefined {
  if (recorded.kind !== 'shell' || commandRules.isEmpty) return undefined
  return new ScriptWatch(commandRules, events.onPiped)
}

function kindOf(recorded: Recorded, terminal: Terminal | undefined): ChannelOpen['kind'] {
  if (recorded.kind !== 'exec') return recorded.kind
  const { kind } = recorded.classified
  return kind === 'command' || terminal !== undefined ? 'exec' : kind
}

function commandOf(recorded: Recorded): string[] {
  if (recorded.kind === 'subsystem') return [recorded.name]
  return recorded.kind === 'exec' ? commandPieces(recorded.command) : []
}

function commandPieces(command: Uint8Array): string[] {
  const pieces: string[] = []
  for (let at = 0; at < command.length; at += COMMAND_PIECE) {
    pieces.push(displayText(command.subarray(at, at + COMMAND_PIECE)))
  }
  return pieces
}
