/** What one process of a run made for all of them. */
export type PreparedDatabases = {
  /** A file with the tables of this release. */
  readonly sqlite: string;
  /** Null when no server can be had here. */
  readonly postgres: {
    /** Address of a database that tests leave alone. */
    readonly server: string;
    /** Name of a database with the tables of this release. */
    readonly template: string;
  } | null;
};

const VARIABLE = 'TEST_PREPARED_DATABASES';

/** Undefined where single files are run. */
export function preparedDatabases(): PreparedDatabases | undefined {
  const text = process.env[VARIABLE];
  return text === undefined ? undefined : (JSON.parse(text) as PreparedDatabases);
}

/** Tells this process and all that it starts from now on. */
export function announce(databases: PreparedDatabases): void {
  process.env[VARIABLE] = JSON.stringify(databases);
}
