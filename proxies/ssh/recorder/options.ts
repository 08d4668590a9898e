/** The parts of its session that a recorder of an SSH channel needs. */
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
  /** The right under which the channel was opened. */
  right: Right
  /** Set if SFTP is allowed, so a command may speak it too. */
  maySftp: boolean
  /** Rules for SCP's files. For SFTP's, the filter applies them earlier. */
  fileRules: FileJudge
  /** Rules for command lines. */
  commandRules: CommandRules
  /** Milliseconds, never decreasing. */
  now: () => number
  sink: FrameSink
  /** Hashes contents; absent: this process does. */
  hashing?: Hashing
  /** The channel's number in the recording. */
  channel: number
  /** The session's changes to files, of all its channels. */
  changes: Changes
  /** The session's file sizes; an upload by SCP reports growth here. */
  sizes: Pick<OpenSizes, 'reached'>
  /** The session's quota for channels without a terminal. */
  quota: Quota
  /** The session's quota for terminals. */
  terminalQuota: Quota
  events: RecorderEvents
  /** Set if the channel has a terminal. */
  terminal?: Terminal
}

export type Terminal = NonNullable<ChannelOpen['terminal']>
