import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import type { Store } from '../../application/ports/store.ts';
import type { Macs } from '../../domain/audit/macs.ts';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { describeAdministration } from './store/administration.suite.ts';
import { describeAudit } from './store/audit.suite.ts';
import { describePruning, describeTampering } from './store/audit-pruning.suite.ts';
import { describeAuthorizations } from './store/authorizations.suite.ts';
import { describeDatabase } from './store/database.suite.ts';
import { describeDeferred, describeOutcomes } from './store/deferred.suite.ts';
import { describeFollowedWallets } from './store/followed-wallets.suite.ts';
import { describeConcurrency, describeIsolation } from './store/isolation.suite.ts';
import { describeIssuedSubjects } from './store/issued-subjects.suite.ts';
import { describeMaintenance } from './store/maintenance.suite.ts';
import { describeSessionRates, describeSessions } from './store/sessions.suite.ts';
import { describeStatusLists } from './store/status.suite.ts';
import { describeTenants } from './store/tenants.suite.ts';
import { describeKeptTrustLists, describeTrustLists } from './store/trust-lists.suite.ts';
import { describeWalletSteps } from './store/wallet.suite.ts';

/** Tests for every store. */
function describeStore(open: () => Store, macs: Macs): void {
  // First, since it verifies the chains of all tenants repeatedly, and each suite leaves some tenants behind.
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

type OpenStore = { readonly store: OrmStore; readonly url: string };

/** @param suites get a fresh database: a suite that reads all tenants does not find those of other suites. */
function describeOn(kind: DatabaseKind, title: string, suites: (getOpenStore: () => OpenStore) => void): void {
  describe(`${title} on ${kind.name}`, () => {
    let database: TestDatabase | undefined;
    let store: OrmStore | undefined;
    before(async function () {
      database = await kind.open();
      if (database === undefined) return this.skip();
      store = await OrmStore.open({ url: database.url, poolSize: 8 }, cipher);
    });
    after(async () => {
      await store?.close();
      await database?.drop();
    });
    suites(() => {
      if (store === undefined || database === undefined) throw new Error('The database is not open.');
      return { store, url: database.url };
    });
  });
}

for (const kind of databases()) {
  const macs = cipher.macs(AUDIT_LOG);
  describeOn(kind, 'OrmStore', (getOpenStore) => {
    describeStore(() => getOpenStore().store, macs);
    describeDatabase(kind, () => ({ ...getOpenStore(), cipher }));
  });
  describeOn(kind, 'OrmStore and old audit entries', (getOpenStore) => describePruning(() => ({ ...getOpenStore(), macs })));
  describeOn(kind, 'OrmStore and audit entries', (getOpenStore) => describeTampering(() => ({ ...getOpenStore(), cipher })));
}
