/** Statements beside the store, as the owner of all databases of a test server. */
import pg from 'pg'

/** Connects without a password; other roles need theirs. */
export const OWNER = 'sallyport'

/** Runs statements. Returns the rows of the last one. */
export async function runSql(
  port: number,
  database: string,
  text: string,
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ host: '127.0.0.1', port, user: OWNER, database })
  await client.connect()
  try {
    return [await client.query(text)].flat().at(-1)?.rows ?? []
  } finally {
    await client.end()
  }
}
