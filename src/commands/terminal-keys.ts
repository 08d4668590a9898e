/**
 * Tells the signals of a terminal's keys from those of `kill`. A key's signal goes to the whole foreground group, so a shell
 * of its own in that group gets it too, and ends. It echoes lines: one that comes back has met no signal.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

const SHELL = '/bin/sh'
const ECHO = 'trap exit INT QUIT; while read -r line; do echo "$line"; done'

export class TerminalKeys {
  /** Absent until it has echoed a line: a signal during its start may have missed it. */
  #shell: ChildProcess | undefined
  #starting: ChildProcess | undefined
  /** Those that wait for a line or for the shell's end, in their order. */
  #waiting: ((wasKey: boolean) => void)[] = []
  #isStopped = false

  private constructor() {}

  /** Resolves when keys are heard, if there is a terminal. */
  static async listening(): Promise<TerminalKeys> {
    const keys = new TerminalKeys()
    await new Promise<void>((resolve) => keys.#start(resolve))
    return keys
  }

  /** Whether a signal that has come was a key's: sent to the program beside this process too. */
  wasKey(): Promise<boolean> {
    const shell = this.#shell
    if (!isInForeground()) return Promise.resolve(false)
    if (!shell) return Promise.resolve(true)
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      shell.stdin?.write('\n')
    })
  }

  stop(): void {
    this.#isStopped = true
    const shell = this.#shell ?? this.#starting
    shell?.stdin?.end()
    shell?.stdout?.destroy()
    shell?.unref()
  }

  /** Starts a shell, without the secret in its environment. */
  #start(onSettled: () => void = () => undefined): void {
    if (this.#isStopped || terminalOf() === '0') {
      onSettled()
      return
    }
    const shell = spawn(SHELL, ['-c', ECHO], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] })
    this.#starting = shell
    // It has ended: its exit follows.
    shell.stdin.on('error', () => undefined)
    shell.stdout.on('data', (lines: Buffer) => {
      if (this.#starting !== shell) for (const _line of lines) this.#waiting.shift()?.(false)
      // Signals that came before are handled first.
      else
        setImmediate(() => {
          if (this.#starting !== shell) return
          this.#starting = undefined
          this.#shell = shell
          onSettled()
        })
    })
    const ended = () => {
      if (this.#starting === shell) this.#starting = undefined
      if (this.#shell === shell) this.#shell = undefined
      for (const answer of this.#waiting.splice(0)) answer(true)
      onSettled()
    }
    shell.on('error', ended)
    shell.on('close', () => {
      ended()
      if (shell.pid !== undefined) this.#start()
    })
    shell.stdin.write('\n')
  }
}

/** Whether this process is in the foreground group of its terminal, and so the program too, whatever stdin is. */
function isInForeground(): boolean {
  const { group, foreground } = statOf()
  return group === foreground
}

const terminalOf = (): string | undefined => statOf().terminal

function statOf(): { group?: string; terminal?: string; foreground?: string } {
  const stat = readFileSync('/proc/self/stat', 'latin1')
  // After the name, which may have blanks: state, parent, group, session, terminal, its foreground group.
  const [, , group, , terminal, foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { ...(group && { group }), ...(terminal && { terminal }), ...(foreground && { foreground }) }
}
