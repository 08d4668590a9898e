/** The order in which test files begin: the longest first, so that the last to end are short. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { ORDER, type ProjectName } from './projects.ts'

/** Sorts by project, slow ones first, and within each by the size of the file. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => place(a) - place(b))
  }
}

const place = ({ project }: TestSpecification): number => ORDER.indexOf(project.name as ProjectName)
