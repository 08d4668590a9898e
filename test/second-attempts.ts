/**
 * A reporter for vitest: names the tests that passed at their second attempt only, with what the first one said. Each
 * is a race in the test or in the broker, for somebody to find.
 */
import type { Reporter, TestModule } from 'vitest/node'

export default class SecondAttempts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    for (const module of modules) {
      for (const test of module.children.allTests('passed')) {
        if (!test.diagnostic()?.flaky) continue
        console.log(`\npassed at the second attempt: ${module.relativeModuleId} > ${test.fullName}`)
        for (const { message } of test.result().errors ?? []) console.log(`  ${message}`)
      }
    }
  }
}
