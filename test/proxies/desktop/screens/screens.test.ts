/** The bastion's own screens, read from their pixels, and the effects of keys and clicks on them. */
import { describe, expect, test } from 'vitest'
import { challengeForm, FormScreen, logonForm, logonOf } from '../../../../proxies/desktop/screens/form.ts'
import { failureMessage, recordedNotice } from '../../../../proxies/desktop/screens/message.ts'
import type { NamedKey, Screen } from '../../../../proxies/desktop/screens/screen.ts'
import { TargetList, type TargetListOptions } from '../../../../proxies/desktop/screens/targets.ts'
import { WaitingScreen } from '../../../../proxies/desktop/screens/waiting.ts'
import { readText, shownText } from './reading.ts'

const SMALL = { width: 640, height: 480 }
const bastion = 'Sallyport'

const targets = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    target: `root@local:web-${n}:vnc`,
    description: n % 2 === 0 ? `desk of ${['Zoë', 'Łukasz', 'Ana'][n % 3]}` : '',
  }))

const list = (options: Partial<TargetListOptions> = {}, size = SMALL) => {
  const all = options.targets ?? targets(500)
  return new TargetList({ bastion, user: 'alice', targets: all, total: all.length, ...options }, size)
}

const type = (screen: Screen, text: string) => {
  for (const character of text) screen.key({ text: character })
}
const press = (screen: Screen, ...keys: NamedKey[]) => {
  for (const key of keys) screen.key({ key })
}

/** Returns the pixel in the middle of a text. */
function placeOf(screen: Screen, text: string, scale = 1): { x: number; y: number } {
  screen.takeDamage()
  const canvas = screen.paint({ left: 0, top: 0, width: screen.width, height: screen.height })
  const found = readText(canvas, scale).filter((one) => one.text === text)
  expect(found, `where ${text} stands`).not.toHaveLength(0)
  return { x: found[0]!.left + 4 * scale, y: found[0]!.top + 6 * scale }
}

function click(screen: Screen, { x, y }: { x: number; y: number }): void {
  screen.pointer({ x, y, left: false })
  screen.pointer({ x, y, left: true })
  screen.pointer({ x, y, left: false })
}

describe('the list of targets', () => {
  test('shows who, names with their descriptions, and how many', () => {
    const shown = shownText(list())
    expect(shown).toContain('Sallyport')
    expect(shown).toContain('alice')
    expect(shown).toContain('root@local:web-0:vnc')
    expect(shown).toContain('desk of Zoë')
    expect(shown.find((line) => line.includes('of 500 targets'))).toMatch(/^1-\d+ of 500 targets$/)
  })

  test.each([
    [SMALL, 1],
    [{ width: 1024, height: 768 }, 2],
    [{ width: 1920, height: 1080 }, 2],
    [{ width: 3840, height: 2160 }, 4],
  ])('is readable at %o', (size, scale) => {
    expect(shownText(list({}, size), scale)).toContain('root@local:web-7:vnc')
  })

  test('Enter chooses the first; arrows, pages, Home and End move, and stop at the ends', () => {
    const chosen = (...keys: NamedKey[]) => {
      const screen = list()
      screen.takeDamage()
      press(screen, ...keys, 'Enter')
      return screen.outcome
    }
    const choice = (n: number) => ({ choice: targets(500)[n] })
    expect(chosen()).toEqual(choice(0))
    expect(chosen('Up')).toEqual(choice(0))
    expect(chosen('Down', 'Down')).toEqual(choice(2))
    expect(chosen('End')).toEqual(choice(499))
    expect(chosen('End', 'Down')).toEqual(choice(499))
    expect(chosen('End', 'Home')).toEqual(choice(0))
    expect(chosen('PageDown', 'PageUp')).toEqual(choice(0))
    const page = Number(/^1-(\d+) of/.exec(shownText(list()).find((line) => /^1-/.test(line))!)![1])
    expect(chosen('PageDown')).toEqual(choice(page))
  })

  test('shows the selected line wherever it is', () => {
    const screen = list()
    press(screen, 'End')
    expect(shownText(screen)).toContain('root@local:web-499:vnc')
    press(screen, 'Home')
    expect(shownText(screen)).not.toContain('root@local:web-499:vnc')
  })

  test('searches as one types: every word, in names and descriptions, whatever the case', () => {
    const screen = list()
    type(screen, 'ŁUKASZ web-4')
    const shown = shownText(screen)
    expect(shown).toContain('root@local:web-4:vnc')
    expect(shown).not.toContain('root@local:web-0:vnc')
    expect(shown.find((line) => line.includes('found among'))).toMatch(
      /^1-\d+ of \d+ found among 500 targets$/,
    )
    press(screen, 'Down', 'Enter')
    expect(screen.outcome).toEqual({ choice: targets(500)[40] })
  })

  test('a search that was not drawn yet is what Enter chooses from', () => {
    const screen = list()
    screen.takeDamage()
    type(screen, 'web-321')
    press(screen, 'Enter')
    expect(screen.outcome).toEqual({ choice: targets(500)[321] })
  })

  test('says that nothing matches, and chooses nothing then; Backspace and Escape take it back', () => {
    const screen = list()
    type(screen, 'webx')
    expect(shownText(screen)).toContain('Nothing matches the search.')
    press(screen, 'Enter')
    expect(screen.outcome).toBeUndefined()
    press(screen, 'Backspace')
    expect(shownText(screen)).toContain('root@local:web-0:vnc')
    press(screen, 'Escape')
    expect(screen.outcome).toBeUndefined()
    press(screen, 'Escape')
    expect(screen.outcome).toBe('left')
  })

  test('keeps the selected line while a search still finds it', () => {
    const screen = list()
    press(screen, 'Down', 'Down', 'Down')
    type(screen, 'web-3')
    press(screen, 'Escape', 'Enter')
    expect(screen.outcome).toEqual({ choice: targets(500)[3] })
  })

  test('one click selects, a second one on the same line chooses', () => {
    const screen = list()
    const place = placeOf(screen, 'root@local:web-5:vnc')
    click(screen, place)
    expect(screen.outcome).toBeUndefined()
    click(screen, placeOf(screen, 'root@local:web-4:vnc'))
    expect(screen.outcome).toBeUndefined()
    click(screen, placeOf(screen, 'root@local:web-5:vnc'))
    expect(screen.outcome).toBeUndefined()
    click(screen, place)
    expect(screen.outcome).toEqual({ choice: targets(500)[5] })
  })

  test('its buttons', () => {
    const leaving = list()
    click(leaving, placeOf(leaving, 'Leave'))
    expect(leaving.outcome).toBe('left')
    const connecting = list()
    press(connecting, 'Down')
    click(connecting, placeOf(connecting, 'Connect'))
    expect(connecting.outcome).toEqual({ choice: targets(500)[1] })
  })

  test('a button that was held before it came over a line is no click', () => {
    const screen = list()
    const place = placeOf(screen, 'root@local:web-5:vnc')
    screen.pointer({ x: 1, y: 1, left: true })
    screen.pointer({ ...place, left: true })
    screen.pointer({ ...place, left: false })
    press(screen, 'Enter')
    expect(screen.outcome).toEqual({ choice: targets(500)[0] })
  })

  test('the wheel and the scroll bar move what is shown, not what is selected', () => {
    const screen = list()
    screen.takeDamage()
    screen.pointer({ x: 100, y: 200, left: false, wheel: 2 })
    const wheeled = shownText(screen)
    expect(wheeled).toContain('root@local:web-6:vnc')
    expect(wheeled).not.toContain('root@local:web-1:vnc')
    // The bar is at the right edge of the list.
    screen.pointer({ x: SMALL.width - 14, y: 200, left: true })
    screen.pointer({ x: SMALL.width - 14, y: SMALL.height, left: true })
    expect(shownText(screen)).toContain('root@local:web-499:vnc')
    screen.pointer({ x: SMALL.width - 14, y: SMALL.height, left: false })
    press(screen, 'Enter')
    expect(screen.outcome).toEqual({ choice: targets(500)[0] })
  })

  test('says how many there are where the list was cut', () => {
    const cutOff = shownText(list({ total: 12_345 }))
    expect(cutOff).toContain('Only the first 500 of 12345 are here: ask for fewer rights.')
    expect(shownText(list()).join()).not.toContain('Only the first')
  })

  test('an empty list, and the reason why it is there again', () => {
    const screen = list({ targets: [], notice: 'web-1: connection refused' })
    expect(shownText(screen)).toContain('There is no target that you may open.')
    expect(shownText(screen)).toContain('web-1: connection refused')
    press(screen, 'Enter')
    expect(screen.outcome).toBeUndefined()
  })

  test('control characters and characters that turn the direction of text show as ?', () => {
    const hostile = [{ target: 'a@local:b:vnc', description: 'one\x1btwo\u202ethree' }]
    expect(shownText(list({ targets: hostile }))).toContain('one?two?three')
  })
})

describe('messages', () => {
  const failure = () =>
    failureMessage({ bastion, heading: 'Refused', text: 'Not on Sundays. '.repeat(9) }, SMALL)

  test('a reason is shown whole, over several lines', () => {
    const shown = shownText(failure())
    expect(shown).toContain('Refused')
    expect(shown.join(' ').match(/Not on Sundays\./g)).toHaveLength(9)
  })

  test('closes at a key, a click, or after a minute by the clock that it is told', () => {
    const keyed = failure()
    keyed.key({ text: 'x' })
    expect(keyed.outcome).toBe('closed')
    const clicked = failure()
    click(clicked, { x: 5, y: 5 })
    expect(clicked.outcome).toBe('closed')
    const waited = failure()
    waited.tick(5000)
    waited.tick(64_999)
    expect(waited.outcome).toBeUndefined()
    expect(shownText(waited)).toContain('closes in 1 s')
    waited.tick(65_000)
    expect(waited.outcome).toBe('closed')
  })

  test('one that comes in the middle of something stays while somebody types, until they pause', () => {
    const message = failureMessage(
      { bastion, heading: 'The session has ended', text: 'it was killed', isSudden: true },
      SMALL,
    )
    message.tick(10_000)
    message.key({ text: 'x' })
    for (let now = 10_250; now < 15_000; now += 250) {
      message.tick(now)
      message.key({ text: 'x' })
      click(message, { x: 5, y: 5 })
    }
    expect(message.outcome).toBeUndefined()
    message.tick(15_750)
    message.key({ text: 'x' })
    expect(message.outcome).toBe('closed')
  })

  test('the notice of the recording counts down', () => {
    const notice = recordedNotice({ bastion, user: 'alice', target: 'root@local:web:vnc', seconds: 3 }, SMALL)
    notice.tick(100)
    expect(shownText(notice)).toEqual(expect.arrayContaining(['This session is recorded', 'goes on in 3 s']))
    notice.tick(1200)
    expect(shownText(notice)).toContain('goes on in 2 s')
    // Only the countdown changes.
    notice.tick(2200)
    const damage = notice.takeDamage()
    expect(damage).toHaveLength(1)
    expect(damage[0]!.height).toBeLessThan(20)
    notice.tick(3100)
    expect(notice.outcome).toBe('closed')
  })

  test('a waiting state: its words change, Escape and Cancel give up, other keys do not', () => {
    const waiting = new WaitingScreen({ bastion, heading: 'Please wait', text: 'Connecting …' }, SMALL)
    expect(shownText(waiting)).toContain('Connecting …')
    waiting.say('Bob has been asked.')
    expect(shownText(waiting)).toContain('Bob has been asked.')
    waiting.tick(0)
    waiting.takeDamage()
    waiting.tick(1000)
    expect(waiting.takeDamage()).not.toHaveLength(0)
    waiting.key({ text: ' ' })
    press(waiting, 'Enter')
    expect(waiting.outcome).toBeUndefined()
    press(waiting, 'Escape')
    expect(waiting.outcome).toBe('cancelled')
    const clicked = new WaitingScreen({ bastion, heading: 'Please wait', text: '' }, SMALL)
    click(clicked, placeOf(clicked, 'Cancel'))
    expect(clicked.outcome).toBe('cancelled')
  })
})

describe('forms', () => {
  const signIn = (value = '') =>
    new FormScreen(
      {
        bastion,
        heading: 'Sign in',
        fields: [
          { label: 'User', echo: true, value },
          { label: 'Password', echo: false },
        ],
        flaw: 'Wrong name or password.',
        button: 'Sign in',
      },
      SMALL,
    )

  test('is filled in with the keyboard; a password is never drawn', () => {
    const form = signIn()
    type(form, 'alise')
    press(form, 'Left', 'Left', 'Delete')
    type(form, 'c')
    press(form, 'Tab')
    type(form, 'S3cret')
    const shown = shownText(form)
    expect(shown).toEqual(
      expect.arrayContaining(['User', 'alice', 'Password', '••••••', 'Wrong name or password.']),
    )
    press(form, 'Enter')
    expect(form.outcome).toEqual({ answers: ['alice', 'S3cret'] })
  })

  test('begins at the first empty field; Enter goes from field to field', () => {
    const form = signIn('bob')
    type(form, 'pw')
    press(form, 'Enter')
    expect(form.outcome).toEqual({ answers: ['bob', 'pw'] })
    const empty = signIn()
    press(empty, 'Enter')
    expect(empty.outcome).toBeUndefined()
    press(empty, 'Enter')
    expect(empty.outcome).toEqual({ answers: ['', ''] })
  })

  test('Shift-Tab goes back, Escape and Cancel give up, the mouse puts the focus', () => {
    const form = signIn('bob')
    form.key({ key: 'Tab', shift: true })
    type(form, 'by')
    click(form, { ...placeOf(form, 'Password'), y: placeOf(form, 'Password').y + 20 })
    type(form, 'pw')
    click(form, placeOf(form, 'Sign in', 1))
    // The heading has the same words; the button is the lower one.
    const canvas = form.paint({ left: 0, top: 0, ...SMALL })
    const button = readText(canvas, 1).filter(({ text }) => text === 'Sign in')[1]!
    click(form, { x: button.left, y: button.top })
    expect(form.outcome).toEqual({ answers: ['bobby', 'pw'] })
    const cancelled = signIn()
    click(cancelled, placeOf(cancelled, 'Cancel'))
    expect(cancelled.outcome).toBe('cancelled')
    const escaped = signIn()
    press(escaped, 'Escape')
    expect(escaped.outcome).toBe('cancelled')
  })

  test('long input scrolls in its field, and ends somewhere', () => {
    const form = signIn()
    form.key({ text: 'ä'.repeat(5000) })
    form.key({ text: 'end' })
    expect(shownText(form).some((line) => /^ä+$/.test(line))).toBe(true)
    press(form, 'Enter', 'Enter')
    expect(form.outcome).toEqual({ answers: ['ä'.repeat(1025), ''] })
  })

  test('a further factor, and a login at a target', () => {
    const prompts = [{ text: 'Code: ', echo: true }]
    const factor = challengeForm(
      { bastion, challenge: { id: 'x', title: 'Second factor', instructions: 'From your phone', prompts } },
      SMALL,
    )
    expect(shownText(factor)).toEqual(expect.arrayContaining(['Second factor', 'From your phone', 'Code:']))
    type(factor, '123456')
    press(factor, 'Enter')
    expect(factor.outcome).toEqual({ answers: ['123456'] })

    const question = { target: 'web:vnc', login: 'alice', flaw: 'the target refused it' }
    const known = logonForm({ bastion, question }, SMALL)
    expect(shownText(known)).toEqual(expect.arrayContaining(['Login at web:vnc', 'Password of alice']))
    expect(logonOf(question, ['pw'])).toEqual({ password: 'pw' })
    expect(logonOf({ target: 'web:vnc' }, ['bob', 'pw'])).toEqual({ login: 'bob', password: 'pw' })
  })
})
