/** Migrations in PostgreSQL's words. */

/** Returns SQLite's text of a migration for PostgreSQL: the same tables, keys and indexes. */
export function postgresText(sql: string): string {
  return (
    sql
      .replace(/\) strict(, without rowid)?;/g, ');')
      // Times in milliseconds do not fit into PostgreSQL's integer.
      .replace(/\binteger\b/g, 'bigint')
      .replace(/\bblob\b/g, 'bytea')
      // Compares bytes and folds a to z only, whatever the locale of the database.
      .replace(/\btext\b/g, 'text collate "C"')
  )
}
