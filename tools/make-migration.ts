import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { connect, dialectOf } from '../adapters/persistence/opening/database.ts';
import { folderOf, namesOf } from '../adapters/persistence/opening/migrate.ts';

/**
 * `npm run migration -- <name>`: writes the differences between the entity definitions and the last snapshot as a new
 * migration, for both dialects. The snapshots contain the earlier state, so no database server is needed. Statements that both dialects run
 * belong in `both-dialects.ts`.
 */
const name = process.argv[2];
if (name === undefined || !/^[a-z_]+$/.test(name)) {
  console.error('npm run migration -- <name>, in small letters with underscores');
  process.exit(2);
}
const urls = ['sqlite::memory:', process.env['DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres'];
const lastNumber = Math.max(...(['postgres', 'sqlite'] as const).flatMap(namesOf).map((fileName) => Number(/\d+/.exec(fileName))));
for (const url of urls) {
  const folder = folderOf(dialectOf(url));
  const orm = await connect({ url, poolSize: 1 });
  const { fileName } = await orm.migrator.create(undefined, false, false, name);
  await orm.close();
  if (fileName === '') {
    console.log(`${dialectOf(url)}: no schema changes`);
    continue;
  }
  // MikroORM numbers files by time; this folder numbers them consecutively.
  const numbered = `Migration${String(lastNumber + 1).padStart(14, '0')}_${name}`;
  const path = join(folder, `${numbered}.ts`);
  // Databases are never downgraded.
  const [upgradePart = ''] = readFileSync(join(folder, fileName), 'utf8').split('override down');
  const statements = [...upgradePart.matchAll(/this\.addSql\((.*)\);$/gm)].map(([, statement]) => `  ${statement},\n`);
  writeFileSync(path, `export const statements = [\n${statements.join('')}];\n`);
  rmSync(join(folder, fileName));
  console.log(`${relative('.', path)}: run \`npm run format\``);
}
