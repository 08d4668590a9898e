/** A user of a desktop who is asked for a reason, and waits for an approval on a drawn screen. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Screen } from '../../../proxies/desktop/screens/screen.ts'
import { Stage } from '../../../proxies/desktop/stage.ts'
import {
  type Choice,
  isRefusal,
  type OwnDisplay,
  type Refusal,
  TargetChoice,
} from '../../../proxies/desktop/target-choice.ts'
import { type ApprovalNotice, ApprovalWaits } from '../../../proxies/session/approval-waits.ts'
import { shownText } from './screens/reading.ts'

const TARGET = 'root@local:desk:vnc'
const SIZE = { width: 800, height: 600 }
const WAIT = {
  approval: 'A1',
  target: TARGET,
  lines: ['1 of bosses has to agree', 'until 12:00'],
  expires: 0,
}
const QUESTION = { target: TARGET, comment: 'mandatory', ticket: 'optional' } as const

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], now: 0 }))
afterEach(() => void vi.useRealTimers())

type Opened = { isOpen: true }

function world(answers: (Opened | Refusal)[]) {
  const screens: Screen[] = []
  const outcomes: ((outcome: unknown) => void)[] = []
  const display = {
    size: SIZE,
    show: (screen: Screen, onOutcome: (outcome: unknown) => void = () => undefined) => {
      screens.push(screen)
      outcomes.push(onOutcome)
    },
    ask: (screen: Screen) => new Promise((resolve) => display.show(screen, resolve)),
  }
  const withdrawn: string[] = []
  const approvals = new ApprovalWaits({ withdraw: async ({ approval }) => void withdrawn.push(approval) })
  const choices: Choice[] = []
  const targets = [TARGET]
  const patience: number[] = []
  const gone = new AbortController()
  const choice = new TargetChoice<Opened>({
    gate: {
      targets: async () => ({
        targets: targets.map((target) => ({ target, description: '' })),
        total: targets.length,
      }),
    },
    identity: { token: 't', user: 'alice', displayName: 'Alice', hasTarget: true },
    protocol: 'VNC',
    bastion: 'Sallyport',
    display: () => display as unknown as OwnDisplay,
    open: async (chosen) => {
      choices.push(chosen)
      return answers.shift() ?? { message: 'the test has no more answers' }
    },
    approvals,
    onPatience: (milliseconds) => patience.push(milliseconds),
    signal: gone.signal,
  })
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    choice,
    targets,
    choices,
    patience,
    withdrawn,
    approvals,
    gone,
    settle,
    screens,
    shown: () => shownText(screens.at(-1)!).join('\n'),
    type: async (...keys: (string | { key: 'Enter' | 'Escape' | 'Tab' })[]) => {
      const screen = screens.at(-1)!
      for (const key of keys) screen.key(typeof key === 'string' ? { text: key } : key)
      if (screen.outcome !== undefined) outcomes[screens.length - 1]!(screen.outcome)
      await settle()
    },
    tell: async (state: ApprovalNotice['state'], text: string) => {
      approvals.noticed({ type: 'approval', identity: 't', approval: 'A1', state, text })
      await settle()
    },
  }
}

const ENTER = { key: 'Enter' } as const
const ESCAPE = { key: 'Escape' } as const

test('a reason is insisted on, then the approval is waited for, then the session opens with both', async () => {
  const { choice, choices, patience, settle, shown, type, tell } = world([
    { message: '', reason: QUESTION },
    { message: '', wait: { ...WAIT, expires: 60_000 } },
    { isOpen: true },
  ])
  const reached = choice.reach({})
  await settle()
  expect(shown()).toMatch(/Why do you open this session[\s\S]*Comment[\s\S]*Ticket \(optional\)/)
  await type(ENTER, '#', '1', ENTER)
  expect(shown()).toContain('the comment may not be empty')
  expect(shown()).toContain('#1')
  await type('disk', ENTER, ENTER)
  expect(shown()).toMatch(/Waiting for an approval[\s\S]*1 of bosses has to agree[\s\S]*until 12:00/)
  await tell('pending', 'boss2 agrees \u001b[2J')
  expect(shown()).toContain('boss2 agrees ?[2J')
  await tell('accepted', 'granted')
  expect(shown()).toContain('Connecting')
  expect(await reached).toEqual({ isOpen: true })
  const reason = { comment: 'disk', ticket: '#1' }
  expect(choices).toEqual([{}, { reason }, { reason, approval: 'A1' }])
  expect(patience).toEqual([60_000, 0])
})

test('Escape withdraws it; so does a viewer that goes', async () => {
  const { choice, withdrawn, settle, type, gone } = world([
    { message: '', wait: WAIT },
    { message: '', wait: WAIT },
  ])
  const first = choice.reach({})
  await settle()
  await type(ESCAPE)
  expect(await first).toEqual({ message: 'the request for approval was withdrawn' })
  const second = choice.reach({})
  await settle()
  gone.abort()
  expect(isRefusal(await second)).toBe(true)
  expect(withdrawn).toEqual(['A1', 'A1'])
})

test('a rejection comes back to the list with its words', async () => {
  const { choice, settle, shown, type, tell } = world([{ message: '', wait: WAIT }])
  const left = choice.fromList()
  await settle()
  await type(ENTER)
  await tell('rejected', 'rejected by boss:\nnot \u202etoday')
  expect(shown()).toContain('rejected by boss:')
  expect(shown()).toContain(TARGET)
  await type(ESCAPE)
  expect(await left).toBe('left')
})

test('a refused reason comes back with its text, a few times; Escape at it leaves', async () => {
  const { choice, choices, settle, shown, type } = world(
    Array.from({ length: 9 }, () => ({ message: 'no', reason: { ...QUESTION, flaw: 'no such ticket' } })),
  )
  const reached = choice.reach({})
  await settle()
  await type('why', ENTER, ENTER)
  for (let n = 0; n < 2; n++) {
    expect(shown()).toMatch(/no such ticket[\s\S]*why/)
    await type(ENTER, ENTER)
  }
  expect(await reached).toMatchObject({ message: 'no' })
  expect(choices).toHaveLength(4)
  const other = world([{ message: '', reason: QUESTION }])
  const cancelled = other.choice.reach({})
  await other.settle()
  await other.type(ESCAPE)
  expect(await cancelled).toEqual({ message: 'the reason was cancelled' })
})

test('the screen of a wait runs no clock', () => {
  const { choice, screens, settle } = world([{ message: '', wait: WAIT }])
  void choice.reach({})
  return settle().then(() => {
    const stage = new Stage({
      stream: { congested: false },
      isAwaited: () => false,
      begin: () => undefined,
    })
    stage.show(screens.at(-1)!)
    expect(vi.getTimerCount()).toBe(0)
    stage.close()
  })
})

test('the list is shown anew when targets of it have ended, and not over another screen', async () => {
  const { choice, targets, settle, shown, screens, type } = world([{ message: 'no such target' }])
  targets.push('root@local:night:vnc')
  const chosen = choice.fromList()
  await settle()
  expect(shown()).toContain('night')
  targets.pop()
  choice.refresh('a timeframe has ended')
  await settle()
  expect(shown()).toContain('a timeframe has ended')
  expect(shown()).not.toContain('night')
  await type({ key: 'Enter' })
  expect(shown()).toContain('no such target')
  const count = screens.length
  await type({ key: 'Escape' })
  choice.refresh('once more')
  await settle()
  expect(screens).toHaveLength(count)
  expect(await chosen).toBe('left')
})
