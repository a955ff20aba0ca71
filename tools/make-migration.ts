import { connect } from '../adapters/persistence/database.ts';

/**
 * `npm run migration -- <name>`: writes what the rows gained since the last snapshot as a new migration, for
 * both dialects. PostgreSQL needs a reachable server (`DATABASE_URL`), since the driver asks it for its version.
 */
const name = process.argv[2];
const urls = [
  'sqlite::memory:',
  process.env['DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres',
];
for (const url of urls) {
  const orm = await connect({ url, poolSize: 1 }, 'migrate');
  const { fileName } = await orm.migrator.create(undefined, false, false, name);
  console.log(fileName === '' ? `${url}: nothing new` : fileName);
  await orm.close();
}
