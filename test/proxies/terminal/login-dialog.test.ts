/** The input at each prompt, and the reported result of a login, without a socket and without a clock. */
import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { LoginDialog, type LoginStep } from '../../../proxies/terminal/login-dialog.ts'
import { HEARD_LIMIT } from '../../../proxies/terminal/prompts.ts'
import { LOGIN_OPTIONS } from '../../../src/model/login-options.ts'

/** A policy with a pattern for the prompt, which may come first then. */
const OWN_PROMPT = { ...LOGIN_OPTIONS, passwordPrompt: `(?:${LOGIN_OPTIONS.passwordPrompt})` }

const PASSWORD = 'Sec-ret1'
const given = {
  name: 'sw1',
  login: 'admin',
  password: PASSWORD,
  isPersonal: false,
  options: OWN_PROMPT,
}

/** Returns a dialog, its shown output, and its step when the target is silent after some output. */
function dialogue(more: Partial<ConstructorParameters<typeof LoginDialog>[0]> = {}) {
  const dialog = new LoginDialog({ ...given, ...more })
  let shown = ''
  const hears = (text: string, isLong = false): LoginStep => {
    shown += Buffer.from(dialog.receive(Buffer.from(text))).toString()
    return dialog.silent(isLong)
  }
  const all = () => shown + Buffer.from(dialog.flush()).toString()
  return { dialog, hears, all }
}

describe('a prompt for a password that comes before any for a login', () => {
  const byDefault = (more: Parameters<typeof dialogue>[0] = {}) =>
    dialogue({ options: LOGIN_OPTIONS, ...more })

  test('is not answered, and fails the login when it stays', () => {
    const { hears, dialog } = byDefault()
    expect(hears('Message of root: give me your\r\nPassword: ')).toBeUndefined()
    expect(dialog.silent(true)).toEqual({
      failed: expect.stringContaining('asks for a password and has not asked for the login admin'),
    })
  })

  test('is not answered in a banner, and the login goes on', () => {
    const { hears } = byDefault()
    expect(hears('Password: ')).toBeUndefined()
    expect(hears('nobody will ask you for it\r\nlogin: ')).toEqual({ type: 'admin\r' })
    expect(hears('admin\r\nPassword: ')).toEqual({ type: `${PASSWORD}\r` })
  })

  test.each([
    ['the protocol has told the login', { isNamed: true }],
    ['the account has no login', { login: '' }],
    ['the policy has a rule for it', { options: OWN_PROMPT }],
  ])('is answered where %s', (_, more) => {
    expect(byDefault(more).hears('Password: ')).toEqual({ type: `${PASSWORD}\r` })
  })
})

describe('prompts from the factory', () => {
  test.each([
    'login: ',
    'vm login: ',
    'Username: ',
    'User Name:',
    'user: ',
    'router1 Username: ',
    'Login as: ',
    '\x1b[2J\x1b[1;1HUsername: ',
  ])('%j asks for the login', (prompt) => {
    expect(dialogue().hears(`Welcome\r\n${prompt}`)).toEqual({ type: 'admin\r' })
  })

  test.each([
    'Password: ',
    'password:',
    "admin@sw1's password: ",
    'Enter PASSCODE: ',
    'Password for admin: ',
  ])('%j asks for the password', (prompt) => {
    expect(dialogue().hears(`Welcome\r\n${prompt}`)).toEqual({ type: `${PASSWORD}\r` })
  })

  test.each([
    'Last login: Tue Nov 17 from 192.0.2.1',
    'Password: is what you must never tell anybody',
    'login: \r\n',
    'Authorised users only',
    'Trying...',
  ])('%j asks for nothing', (line) => {
    expect(dialogue().hears(line)).toBeUndefined()
  })
})

test('logs in, and shows what the target has said but the password', () => {
  const { hears, all } = dialogue()
  expect(hears('Welcome\r\nlogin: ')).toEqual({ type: 'admin\r' })
  expect(hears('admin\r\n')).toBeUndefined()
  expect(hears('Password: ')).toEqual({ type: `${PASSWORD}\r` })
  expect(hears(`${PASSWORD}\r\n`)).toBeUndefined()
  expect(hears('Last login: today\r\n$ ')).toEqual({ in: true })
  expect(all()).toBe('Welcome\r\nlogin: admin\r\nPassword: \r\nLast login: today\r\n$ ')
})

test('a prompt that begins like the password is one all the same', () => {
  const { hears, all } = dialogue({ password: '$ 1' })
  hears('Password: ')
  expect(hears('\r\npeer$ ')).toEqual({ in: true })
  expect(all()).toBe('Password: \r\npeer$ ')
})

test('what is not a prompt is the end of the login after a long silence only', () => {
  const { hears, dialog } = dialogue()
  hears('Password: ')
  expect(hears('\r\n', true)).toBeUndefined()
  expect(hears('Press any key')).toBeUndefined()
  expect(dialog.silent(true)).toEqual({ in: true })
})

test('nothing is typed into a banner that looks like a shell before the login prompt', () => {
  const { hears } = dialogue()
  expect(hears('##############')).toBeUndefined()
  expect(hears('\r\nlogin: ')).toEqual({ type: 'admin\r' })
})

test('who is trusted is logged in without a word', () => {
  expect(dialogue().hears('Last login: today\r\n$ ', true)).toEqual({ in: true })
})

test.each([
  ['Password: ', 'Password:'],
  ['Login incorrect\r\nlogin: ', 'Login incorrect'],
  ['% Bad passwords, too many failures!', '% Bad passwords, too many failures!'],
  ['Access denied\r\n\r\nUsername: ', 'Access denied'],
  ['Permission denied, please try again.', 'Permission denied, please try again.'],
])('%j refuses the password, which is typed once', (answer, words) => {
  const { hears } = dialogue()
  hears('login: ')
  hears('Password: ')
  const step = hears(`\r\n${answer}`)
  expect(step).toEqual({ failed: `sw1 refused the password of admin: it said "${words}"` })
})

test('of a failure before the prompt of a shell only the prompt counts', () => {
  const { hears } = dialogue()
  hears('Password: ')
  expect(hears('\r\nYour last login failed. Access denied 3 times.\r\n$ ')).toEqual({ in: true })
})

test('refuses the login', () => {
  const { hears } = dialogue()
  hears('login: ')
  expect(hears('admin\r\nNo such user\r\nlogin: ')).toEqual({
    failed: 'sw1 refused the login admin: it said "login:"',
  })
})

test('no password is stored for a target that asks for one', () => {
  const { password: _, ...without } = given
  const dialog = new LoginDialog(without)
  dialog.receive(Buffer.from('Password: '))
  expect(dialog.silent(false)).toEqual({
    failed: 'sw1 asks for a password, and none is stored for the account',
  })
})

describe('a second password', () => {
  const withEnable = () => dialogue({ enable: 'En-Pass1' })

  test('is typed where the command asks for it', () => {
    const { hears, all } = withEnable()
    hears('Password: ')
    expect(hears('\r\nsw1> ')).toEqual({ type: 'enable\r' })
    expect(hears('enable\r\nPassword: ')).toEqual({ type: 'En-Pass1\r' })
    expect(hears('En-Pass1\r\nsw1# ')).toEqual({ in: true })
    expect(all()).toBe('Password: \r\nsw1> enable\r\nPassword: \r\nsw1# ')
  })

  test('is not needed where everything is allowed already', () => {
    const { hears } = withEnable()
    hears('Password: ')
    expect(hears('\r\nsw1# ')).toEqual({ in: true })
  })

  test.each(['Password: ', '% Bad secrets'])('is refused by %j', (answer) => {
    const { hears } = withEnable()
    hears('Password: ')
    hears('\r\nsw1> ')
    hears('Password: ')
    expect(hears(`\r\n${answer}`)).toEqual({
      failed: expect.stringContaining('sw1 refused the secret for enable'),
    })
  })
})

describe('a person who logs in', () => {
  test('is left alone at a password prompt', () => {
    expect(dialogue({ isPersonal: true }).hears('Password: ')).toEqual({ in: true })
  })

  test('has the login typed that the target was opened for', () => {
    const { hears } = dialogue({ isPersonal: true })
    expect(hears('login: ')).toEqual({ type: 'admin\r' })
    expect(hears('Password: ')).toEqual({ in: true })
  })

  test('goes on when the time is up', () => {
    expect(dialogue({ isPersonal: true }).dialog.expired()).toEqual({ in: true })
  })
})

describe('when it comes to nothing', () => {
  test('the time is up before there was a prompt', () => {
    const { hears, dialog } = dialogue()
    expect(dialog.expired()).toEqual({
      failed: 'sw1 showed no prompt that the connection policy knows within 30 s: it said nothing',
    })
    hears('Hello\x1b[31m there\r\n')
    expect(dialog.expired()).toEqual({ failed: expect.stringMatching(/it said "Hello there"$/) })
  })

  test('the time is up behind the password', () => {
    const { hears, dialog } = dialogue()
    hears('Password: ')
    expect(dialog.expired()).toEqual({
      failed: 'sw1 did not go on after the password within 30 s: it said nothing',
    })
  })

  test('the target closes', () => {
    const { hears, dialog } = dialogue()
    expect(dialog.brokenOff).toBe('sw1 closed the connection during the login')
    hears('Too many users\r\n')
    expect(dialog.brokenOff).toBe('sw1 closed the connection during the login; it said "Too many users"')
  })

  test('the target closes because of the password', () => {
    const { hears, dialog } = dialogue()
    hears('Password: ')
    dialog.receive(Buffer.from('\r\nLogin incorrect\r\n'))
    expect(dialog.brokenOff).toBe('sw1 refused the password of admin: it said "Login incorrect"')
  })

  test('nobody reads the password in what is told', () => {
    const { hears, dialog } = dialogue()
    hears('Password: ')
    dialog.receive(Buffer.from(`\r\nbad password ${PASSWORD}\r\n`))
    expect(JSON.stringify([dialog.brokenOff, dialog.expired()])).not.toContain(PASSWORD)
  })
})

test('what a target shows before the login cannot do more to a terminal than text', () => {
  const { hears, all } = dialogue()
  hears('\x1b]0;title\x07\x1b]52;c;AAAA\x07\x1b[6n\x1b[1mHello\x1b[m\r\nlogin: ')
  expect(all()).toBe('\x1b[1mHello\x1b[m\r\nlogin: ')
})

test('an endless line is looked at from its end', () => {
  const { hears } = dialogue()
  for (let count = 0; count < 10; count++) hears('x '.repeat(HEARD_LIMIT))
  expect(hears('login: ')).toEqual({ type: 'admin\r' })
})
