/** Questions between a proof and the success of a sign-in: a reason, then a login at the target. */
import { expect, test } from 'vitest'
import { AskedQuestions, MAX_CHALLENGES } from '../../src/gate/asked-questions.ts'
import type { SignedIn } from '../../src/gate/signed-in.ts'
import { Secret } from '../../src/model/secret.ts'

const SOURCE = { address: '127.0.0.1', port: 5 }
const LOGIN = 'ops1+root@srv1'
const REASON = { target: 'root@local:srv1:ssh', comment: 'mandatory', ticket: 'optional' } as const
const LOGON = { target: 'srv1:ssh' }

function asking(question: Parameters<AskedQuestions['ask']>[0]['question']) {
  const asked = new AskedQuestions()
  const signedIn = { source: SOURCE, kept: { password: Secret.of('kept') } } as unknown as SignedIn
  let { challenge } = asked.ask({ signedIn, displayName: 'Ops', login: LOGIN, question })
  const answer = (answers: string[], login = LOGIN, source = SOURCE) => {
    const outcome = asked.answered(
      { method: 'keyboard-interactive', challenge: challenge.id, answers },
      login,
      source,
    )
    if ('challenge' in outcome) challenge = outcome.challenge
    return outcome
  }
  return { asked, signedIn, answer, challenge: () => challenge }
}

test('a reason is asked for until it is complete, then the login at the target', () => {
  const { signedIn, answer, challenge } = asking({ reason: REASON, next: LOGON })
  expect(challenge()).toMatchObject({
    instructions: 'root@local:srv1:ssh asks for a comment and a ticket',
    prompts: [
      { text: 'Comment: ', echo: true },
      { text: 'Ticket (optional): ', echo: true },
    ],
    hint: expect.stringContaining('sallyport approvals request root@local:srv1:ssh --comment COMMENT"'),
  })
  expect(answer([' ', '#1'])).toMatchObject({ result: 'challenge' })
  expect(challenge().instructions).toBe('a comment is needed')
  answer(['x'.repeat(5_000), ''])
  expect(challenge().prompts).toHaveLength(2)
  answer([' disk full ', ' #1 '])
  expect(signedIn.reason).toEqual({ comment: 'disk full', ticket: '#1' })
  expect(challenge().prompts.map(({ text }) => text)).toEqual([
    'Login at srv1:ssh: ',
    'Password at srv1:ssh: ',
  ])
  expect(answer(['root', 'secret'])).toMatchObject({ signedIn })
})

test('an answer counts once, on the connection and under the login of its challenge', () => {
  for (const [login, source] of [
    ['other+root@srv1', SOURCE],
    [LOGIN, { ...SOURCE, port: 6 }],
    [LOGIN, { ...SOURCE, address: '127.0.0.2' }],
  ] as const) {
    const { answer } = asking({ reason: REASON })
    expect(answer(['why', ''], login, source)).toEqual({ result: 'rejected' })
    expect(answer(['why', ''])).toEqual({ result: 'rejected' })
  }
  const { answer } = asking({ reason: REASON })
  expect(answer(['why', ''])).toMatchObject({ displayName: 'Ops' })
  expect(answer(['why', ''])).toEqual({ result: 'rejected' })
})

test('those that wait are bounded, and one that is forgotten keeps no password', () => {
  const { asked, signedIn, challenge } = asking({ reason: REASON })
  asked.forget(challenge().id)
  expect(signedIn.kept.password).toBeUndefined()
  for (let n = 0; n < MAX_CHALLENGES + 5; n++)
    asked.ask({
      signedIn: { source: SOURCE, kept: {} } as SignedIn,
      displayName: '',
      login: LOGIN,
      question: { reason: REASON },
    })
  expect(asked.all.size).toBe(MAX_CHALLENGES)
})
