/** The parts that a recorder of an SSH channel needs from its session. */
import type { ChannelOpen, FrameSink } from '../../../recordings/container/frames.ts'
import type { CommandRules } from '../../../src/model/command-rules.ts'
import type { FileJudge } from '../../../src/model/file-judge.ts'
import type { Right } from '../../../src/model/rights.ts'
import type { Hashing } from '../../session/hash/content-hash.ts'
import type { Quota } from '../../session/quota.ts'
import type { Changes } from '../files/changes.ts'
import type { OpenSizes } from '../files/open-sizes.ts'
import type { RecorderEvents } from './recorder.ts'

export interface RecorderOptions {
  /** Under which the channel was opened. */
  right: Right
  /** SFTP is allowed, so a command may speak it too. */
  maySftp: boolean
  /** What SCP's files are held to; SFTP's are before they come here. */
  fileRules: FileJudge
  /** What command lines are held to. */
  commandRules: CommandRules
  /** Milliseconds, never decreasing. */
  now: () => number
  sink: FrameSink
  /** Where contents are hashed; absent: here. */
  hashing?: Hashing
  /** The channel's number in the recording. */
  channel: number
  /** The session's: what its channels do to files. */
  changes: Changes
  /** The session's: what an upload by SCP makes larger is told to it. */
  sizes: Pick<OpenSizes, 'reached'>
  /** The session's for channels without a terminal. */
  quota: Quota
  /** The session's for terminals. */
  terminalQuota: Quota
  events: RecorderEvents
  /** Present when the channel has a terminal. */
  terminal?: Terminal
}

export type Terminal = NonNullable<ChannelOpen['terminal']>
