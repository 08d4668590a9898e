/** `sallyport admin reset-password USER`: for an administrator who is locked out. */
import { randomBytes } from 'node:crypto'
import { Secret } from '../model/secret.ts'
import { besideBroker } from './beside.ts'
import { type Command, UsageError } from './command.ts'

export const adminResetPassword: Command = {
  synopsis: [['admin reset-password USER', 'give a user a new password, and print it']],
  async run(invocation) {
    const [action, name, ...more] = invocation.words
    if (action !== 'reset-password' || name === undefined || more.length > 0) {
      throw new UsageError('expected admin reset-password USER')
    }
    return await besideBroker(invocation, async ({ store, identities, audit }) => {
      const user = await store.users.find(name)
      if (!user) throw new Error(`there is no user ${JSON.stringify(name)}`)
      const password = randomBytes(15).toString('base64url')
      await audit.record('secret.change', { object_type: 'user', object: user.userName, result: 'success' })
      await identities.setPassword(user.id, Secret.of(password))
      process.stdout.write(`the new password of ${user.userName} is ${password}\n`)
      return 0
    })
  },
}
