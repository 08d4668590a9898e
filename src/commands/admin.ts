/** `sallyport admin`: for an administrator who is locked out. */
import { randomBytes } from 'node:crypto'
import { Secret } from '../model/secret.ts'
import { besideBroker } from './beside.ts'
import { type Command, UsageError } from './command.ts'

export const adminResets: Command = {
  synopsis: [
    ['admin reset-password USER', 'give a user a new password, and print it'],
    [
      'admin reset-factor USER',
      'remove the second factor of a user, with its recovery codes and the security keys',
    ],
  ],
  async run(invocation) {
    const [action, name, ...more] = invocation.words
    const isKnown = action === 'reset-password' || action === 'reset-factor'
    if (!isKnown || name === undefined || more.length > 0) {
      throw new UsageError('expected admin reset-password USER, or admin reset-factor USER')
    }
    return await besideBroker(invocation, async ({ store, identities, factors, audit }) => {
      const user = await store.users.find(name)
      if (!user) throw new Error(`there is no user ${JSON.stringify(name)}`)
      if (action === 'reset-factor') {
        const { enrolled, securityKeys } = await factors.statusOf(user.id)
        if (enrolled === undefined && securityKeys === 0) {
          throw new Error(`the user ${user.userName} has no second factor`)
        }
        await audit.record('factor.reset', { object_type: 'user', object: user.userName })
        await factors.remove(user.id)
        process.stdout.write(`the second factor of ${user.userName} is removed\n`)
        return 0
      }
      const password = randomBytes(15).toString('base64url')
      await audit.record('secret.change', { object_type: 'user', object: user.userName, result: 'success' })
      await identities.setPassword(user.id, Secret.of(password))
      process.stdout.write(`the new password of ${user.userName} is ${password}\n`)
      return 0
    })
  },
}
