import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { connect, dialectOf } from '../adapters/persistence/database.ts';
import { folderOf } from '../adapters/persistence/migrate.ts';

/**
 * `npm run migration -- <name>`: writes what the rows gained since the last snapshot as a new migration, for
 * both dialects. The snapshots say what there was, so no server has to be there.
 */
const name = process.argv[2];
if (name === undefined || !/^[a-z_]+$/.test(name)) {
  console.error('npm run migration -- <name>, in small letters with underscores');
  process.exit(2);
}
const urls = [
  'sqlite::memory:',
  process.env['DATABASE_URL'] ?? 'postgres://postgres@127.0.0.1:5432/postgres',
];
for (const url of urls) {
  const folder = folderOf(dialectOf(url));
  const last = readdirSync(folder).filter((file) => file.startsWith('Migration')).length;
  const orm = await connect({ url, poolSize: 1 });
  const { fileName } = await orm.migrator.create(undefined, false, false, name);
  await orm.close();
  if (fileName === '') {
    console.log(`${dialectOf(url)}: nothing new`);
    continue;
  }
  // The tool counts by the clock, the folder from one.
  const made = fileName.replace(/\.ts$/, '');
  const numbered = `Migration${String(last + 1).padStart(14, '0')}_${name}`;
  const path = join(folder, `${numbered}.ts`);
  // Databases only go upwards.
  const text = readFileSync(join(folder, fileName), 'utf8').replace(
    /\n+ {2}override down\(\)[\s\S]*?\n {2}\}\n/,
    '\n',
  );
  const own = text
    .replaceAll(made, numbered)
    .replace("'@mikro-orm/migrations'", "'../migration.ts'")
    .replace('override name', 'readonly name')
    .replace(/override up\(\): [^{]+\{/, 'up(): void {');
  writeFileSync(path, own);
  rmSync(join(folder, fileName));
  console.log(`${relative('.', path)}; \`npm run format\` gives it its form`);
}
