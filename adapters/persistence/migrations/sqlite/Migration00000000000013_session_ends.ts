/** On PostgreSQL this makes a function; SQLite has the statement in `sqlite/commit.ts`. */
export const statements = ['select 1'];
