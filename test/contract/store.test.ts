import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Store } from '../../application/ports/store.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { databases, type TestDatabase } from '../support/databases.ts';
import { describeAdministration } from './store/administration.suite.ts';
import { describeAudit } from './store/audit.suite.ts';
import { describePruning } from './store/audit-pruning.suite.ts';
import { describeTampering } from './store/audit-tampering.suite.ts';
import { describeAuthorizations } from './store/authorizations.suite.ts';
import { describeConcurrency } from './store/concurrency.suite.ts';
import { describeDatabase } from './store/database.suite.ts';
import { describeDeferred } from './store/deferred.suite.ts';
import { describeFollowedWallets } from './store/followed-wallets.suite.ts';
import { describeIsolation } from './store/isolation.suite.ts';
import { describeIssuedSubjects } from './store/issued-subjects.suite.ts';
import { describeKeptTrustLists } from './store/kept-trust-lists.suite.ts';
import { describeMaintenance } from './store/maintenance.suite.ts';
import { describeOutcomes } from './store/outcomes.suite.ts';
import { describeSessionRates } from './store/session-rates.suite.ts';
import { describeSessions } from './store/sessions.suite.ts';
import { describeStatusLists } from './store/status.suite.ts';
import { describeTenants } from './store/tenants.suite.ts';
import { describeTrustLists } from './store/trust-lists.suite.ts';
import { describeWalletSteps } from './store/wallet.suite.ts';

/** What holds for every store. */
function describeStore(open: () => Store, macs: Macs): void {
  // First, since it verifies the chains of all tenants again and again, of which each suite leaves some behind.
  describeAudit(open, macs);
  describeAdministration(open);
  describeTenants(open);
  describeSessions(open);
  describeSessionRates(open);
  describeOutcomes(open);
  describeWalletSteps(open);
  describeAuthorizations(open);
  describeDeferred(open);
  describeStatusLists(open);
  describeFollowedWallets(open);
  describeIssuedSubjects(open);
  describeKeptTrustLists(open);
  describeTrustLists(open);
  describeMaintenance(open);
  describeIsolation(open);
  describeConcurrency(open);
}

const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });

for (const kind of databases()) {
  describe(`OrmStore on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore | undefined;
    const known = <T>(value: T | undefined): T => {
      if (value === undefined) throw new Error('The database is not open.');
      return value;
    };
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      store = await OrmStore.open({ url: database.url, poolSize: 8 }, cipher);
    });
    after(async () => {
      await store?.close();
      await database?.drop();
    });
    describeStore(() => known(store), cipher.macs(AUDIT_LOG));
    describeDatabase(kind, () => ({ store: known(store), url: known(database).url, cipher }));
    describePruning(() => ({ store: known(store), url: known(database).url, macs: cipher.macs(AUDIT_LOG) }));
    describeTampering(() => ({ store: known(store), url: known(database).url, cipher }));
  });
}
