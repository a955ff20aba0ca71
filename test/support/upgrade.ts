import { connect } from '../../adapters/persistence/database.ts';
import { databases, type TestDatabase } from './databases.ts';
import { startTestService, type TestService } from './test-service.ts';

/** A database of its own for each test, on which services start one after the other. */
export type Upgrade = {
  readonly kind: 'sqlite' | 'postgres';
  readonly url: string;
  /** A service of this release, which brings the database up to date; what still runs at the end is stopped. */
  start(): Promise<TestService>;
  /** Takes back the migrations that came after `migration`. No service runs meanwhile. */
  goBack(migration: string): Promise<void>;
};

/** Defines the tests of `suite` for every kind of database. */
export function describeUpgrade(
  subject: string,
  suite: (upgrade: () => Upgrade, kind: Upgrade['kind']) => void,
): void {
  for (const { name: kind, openEmpty } of databases()) {
    describe(`${subject}, on ${kind}`, function () {
      this.timeout(60_000);
      let database: TestDatabase | undefined;
      let running: TestService | undefined;
      let upgrade: Upgrade;

      beforeEach(async function () {
        database = await openEmpty();
        if (database === undefined) return this.skip();
        const { url } = database;
        const start = async () => {
          const service = await startTestService({ DATABASE_URL: url });
          running = service;
          const close = async () => {
            running = undefined;
            await service.close();
          };
          return { ...service, close };
        };
        const goBack = async (migration: string) => {
          const orm = await connect({ url, poolSize: 2 }, 'migrate');
          await orm.migrator.down({ to: migration });
          await orm.close();
        };
        upgrade = { kind, url, start, goBack };
      });
      afterEach(async () => {
        await running?.close();
        await database?.drop();
      });
      suite(() => upgrade, kind);
    });
  }
}
