import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The files that take longest start first, so that none of them runs alone in the end. */
const LONGEST = [
  'test/attack/broken-copy.test.ts',
  'test/http/races-postgres.test.ts',
  'test/http/attack-tool.test.ts',
  'test/http/docs-key-stores.test.ts',
  'test/http/events.test.ts',
  'test/faults/faults.test.ts',
  'test/contract/rabbitmq.test.ts',
  'test/http/config-import.test.ts',
  'test/http/key-store-outages.test.ts',
  'test/http/key-stores.test.ts',
  'test/contract/hanging-database.test.ts',
  'test/http/no-500.test.ts',
  'test/http/verification-negative.test.ts',
  'test/contract/store.test.ts',
  'test/http/races-sqlite.test.ts',
  'test/http/refused-issuances.test.ts',
  'test/http/audit-verify.test.ts',
  'test/http/config-export.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/vectors/mutations.test.ts',
  'test/http/independent-wallets.test.ts',
  'test/http/audit-log.test.ts',
  'test/http/tenant-removal.test.ts',
  'test/contract/store-races.test.ts',
  'test/http/fault-sweep.test.ts',
  'test/http/keys-rotation.test.ts',
  'test/http/registrar-requests.test.ts',
  'test/http/trust-lists.test.ts',
];

const files = globSync([
  'test/{unit,vectors,contract,http,attack,faults,fuzz}/**/*.test.ts',
  'test/architecture.test.ts',
]);
const place = (file) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);

export default {
  spec: files.toSorted((one, other) => place(one) - place(other) || one.localeCompare(other)),
  require: ['test/support/setup.ts', 'test/support/whole-run.ts'],
  parallel: true,
  // Most files compute, and one worker more would only disturb those that look at the clock.
  jobs: availableParallelism(),
  timeout: 20_000,
  exit: true,
};
