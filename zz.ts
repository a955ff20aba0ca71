import { openDatabase } from './adapters/persistence/database.ts';
const url = process.argv[2]!;
await (await openDatabase({ url, poolSize: 2 } as never)).close();
