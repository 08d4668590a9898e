/** The order in which test files begin: the longest first, so that the last to end are short. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { SERVER } from './peers/databases.ts'
import { ORDER, type ProjectName } from './projects.ts'

/** Sorts by project, slow ones first, and within each by the size of the file. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files.filter(isPossible))
    return sorted.toSorted((a, b) => place(a) - place(b))
  }
}

const place = ({ project }: TestSpecification): number => ORDER.indexOf(project.name as ProjectName)

/** Without a server, the project on PostgreSQL fails on the build server, and is left out elsewhere. */
function isPossible({ project }: TestSpecification): boolean {
  return project.name !== 'postgres' || process.env.CI === 'true' || process.env[SERVER] !== undefined
}
