import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The files that take longest start first, so that none of them runs alone at the end. */
const LONGEST = [
  'test/http/config-import.test.ts',
  'test/http/no-500.test.ts',
  'test/http/verification-negative.test.ts',
  'test/contract/store.test.ts',
  'test/http/refused-issuances.test.ts',
  'test/http/audit-verify.test.ts',
  'test/http/config-export.test.ts',
  'test/vectors/mutations.test.ts',
  'test/http/independent-wallets.test.ts',
  'test/http/audit-log.test.ts',
  'test/http/tenant-removal.test.ts',
  'test/http/keys-rotation.test.ts',
  'test/http/registrar-requests.test.ts',
  'test/http/trust-lists.test.ts',
];

const files = globSync(['test/{unit,vectors,contract,http}/**/*.test.ts', 'test/architecture.test.ts']);
const place = (file) => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length);

/** The fast tier: `npm test`. Nothing in it depends on the time of a clock. */
export default {
  spec: files.toSorted((one, other) => place(one) - place(other) || one.localeCompare(other)),
  require: ['test/support/setup.ts', 'test/support/whole-run.ts'],
  parallel: true,
  jobs: availableParallelism(),
  // It ends what hangs. No test takes nearly as long, so that a busy machine fails none.
  timeout: 180_000,
  exit: true,
};
