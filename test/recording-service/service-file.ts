/** The file of a running recording as its proxy has it, without a gate between. */
import type { CreateFile } from '../../recordings/container/recording-file.ts'
import type { RecordingService } from '../../src/recording-service/service.ts'

export const serviceFile =
  (service: RecordingService, session: string): CreateFile =>
  async (first) => {
    await service.begin(session, first)
    return {
      append: (offset, parts) => service.append(session, offset, parts as Uint8Array[]),
      close: () => service.end(session),
    }
  }
