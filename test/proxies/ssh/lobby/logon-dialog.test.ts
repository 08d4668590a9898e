import { describe, expect, test } from 'vitest'
import { LogonDialog } from '../../../../proxies/ssh/lobby/logon-dialog.ts'
import { MAX_TYPED_LOGIN_BYTES, MAX_TYPED_PASSWORD_BYTES } from '../../../../src/model/logon.ts'

const bytes = (text: string) => Buffer.from(text)
const QUESTION = { target: 'srv1:ssh' }

function typed(dialog: LogonDialog, ...pieces: string[]) {
  let show = ''
  for (const piece of pieces) {
    const step = dialog.type(bytes(piece))
    show += step.show
    if ('logon' in step || 'quit' in step) return { ...step, show }
  }
  return { show }
}

describe('the questions at a terminal', () => {
  test('login with echo, password without, in one piece or in many', () => {
    for (const pieces of [['root\rs3cret\r'], [...'root\rs3cret\r']]) {
      const dialog = new LogonDialog(QUESTION)
      expect(dialog.start()).toBe('Login at srv1:ssh: ')
      expect(typed(dialog, ...pieces)).toEqual({
        show: 'root\r\nPassword of root at srv1:ssh: \r\n',
        logon: { login: 'root', password: 's3cret' },
      })
    }
  })

  test('a login that is known is not asked, and not told to the gate', () => {
    const dialog = new LogonDialog({ ...QUESTION, login: 'adm' })
    expect(dialog.start('sallyport: no')).toBe('sallyport: no\r\nPassword of adm at srv1:ssh: ')
    expect(typed(dialog, 'x\r')).toEqual({ show: '\r\n', logon: { password: 'x' } })
  })

  test('editing, of what is shown and of what is not', () => {
    const dialog = new LogonDialog(QUESTION)
    const { show, ...rest } = typed(dialog, 'ab\x7f\x15rooö\x08t\r', 'wrong\x15s3x\x7fcret\r\n')
    expect(rest).toEqual({ logon: { login: 'root', password: 's3cret' } })
    expect(show).not.toMatch(/wrong|s3|cret/)
    expect(show.slice(show.indexOf('Password'))).toBe('Password of root at srv1:ssh: \r\n')
  })

  test('control bytes, escape sequences and characters that turn the text around are not taken', () => {
    const dialog = new LogonDialog(QUESTION)
    const step = typed(dialog, 'r\x00o\x1b[A\x1bOB\x1b[3~o\x07\u202e\u009bt\t\rpw\r')
    expect(step).toMatchObject({ logon: { login: 'root', password: 'pw' } })
    expect(step.show).toBe('root\r\nPassword of root at srv1:ssh: \r\n')
  })

  test('a character whose bytes come apart', () => {
    const dialog = new LogonDialog({ ...QUESTION, login: 'adm' })
    const [first, second] = [bytes('é').subarray(0, 1), bytes('é').subarray(1)]
    dialog.type(first)
    dialog.type(second)
    expect(dialog.type(bytes('\r'))).toMatchObject({ logon: { password: 'é' } })
  })

  test('what is too long is held no longer than it takes to say so', () => {
    const dialog = new LogonDialog(QUESTION)
    for (let n = 0; n < 100; n++) dialog.type(Buffer.alloc(1000, 'x'))
    dialog.type(bytes('\r'))
    for (let n = 0; n < 100; n++) dialog.type(Buffer.alloc(1000, 'y'))
    const step = dialog.type(bytes('\r'))
    expect('logon' in step && step.logon.login?.length).toBe(MAX_TYPED_LOGIN_BYTES + 1)
    expect('logon' in step && step.logon.password.length).toBe(MAX_TYPED_PASSWORD_BYTES + 1)
  })

  test.each([
    ['Ctrl-C', '\x03'],
    ['Ctrl-D', '\x04'],
  ])('%s leaves, at the login and at the password', (_, key) => {
    expect(typed(new LogonDialog(QUESTION), key)).toMatchObject({ quit: true })
    expect(typed(new LogonDialog(QUESTION), 'root\r', key)).toMatchObject({ quit: true })
  })
})
