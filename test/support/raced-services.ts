import { databases, type TestDatabase } from './databases.ts';
import { created, credentialBody, offerBody } from './populated.ts';
import { RawWallet } from './raw-wallet.ts';
import { type SecondProcess, spread, startSecondProcess } from './second-process.ts';
import { type Answer, createTenant, ROOT, startTestService, type TestService } from './test-service.ts';

const MASTER_SECRET = 'a master secret for the races 0123456789';

/** One database and one or two processes over it; calls go to the processes in turn. */
export type Racing = {
  readonly service: TestService;
  /** One per process. */
  readonly addresses: readonly string[];
  /** Administrator of the tenant `acme`, which issues `pid`. */
  readonly token: string;
  readonly wallet: RawWallet;
};

/** Sessions with an access token each, ready for their credential request. */
export function readySessions(
  { service, token, wallet }: Pick<Racing, 'service' | 'token' | 'wallet'>,
  count: number,
): Promise<readonly { readonly session: string; readonly accessToken: string }[]> {
  return times(count, async () => {
    const { uri, session } = await created(service, token, '/issuer/offer', offerBody('pid'));
    return { session, accessToken: await wallet.accessToken(uri) };
  });
}

export const times = <T>(count: number, call: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => call(index)));

/** How often each outcome came: its status, with the error where there is one. */
export function tally(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of answers) {
    const name = [status, body?.error ?? body?.code].filter((part) => part !== undefined).join(' ');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Defines the tests of `suite` for every kind of database, and on PostgreSQL for two processes too. */
export function describeRaces(subject: string, suite: (racing: () => Racing) => void): void {
  for (const kind of databases()) {
    // SQLite belongs to one process.
    for (const processes of kind.name === 'sqlite' ? [1] : [1, 2]) {
      const where = processes === 1 ? 'one process' : 'two processes';
      describe(`${subject} on ${kind.name} in ${where}`, function () {
        this.timeout(60_000);
        let database: TestDatabase | undefined;
        let first: TestService | undefined;
        let second: SecondProcess | undefined;
        let racing: Racing;
        before(async function () {
          database = await kind.open();
          if (database === undefined) return this.skip();
          const environment = { DATABASE_URL: database.url, MASTER_SECRET, OUTBOUND_ALLOW: '127.0.0.1/32' };
          first = await startTestService(environment);
          if (processes === 2) second = await startSecond(first.address, environment);
          racing = await prepare(first, second === undefined ? [] : [second.address]);
        });
        after(async () => {
          await second?.stop();
          await first?.close();
          await database?.drop();
        });
        suite(() => racing);
      });
    }
  }
}

function startSecond(publicUrl: string, environment: Readonly<Record<string, string>>) {
  return startSecondProcess({
    ...environment,
    HOST: '127.0.0.1',
    PUBLIC_URL: publicUrl,
    AUTH_CLIENT_ID: ROOT.clientId,
    AUTH_CLIENT_SECRET: ROOT.secret,
    LOG_LEVEL: 'silent',
  });
}

async function prepare(first: TestService, others: readonly string[]): Promise<Racing> {
  const service = spread(first, others);
  const { token } = await createTenant(service, 'acme');
  await created(service, token, '/issuer/credentials', credentialBody('pid', 'signing'));
  return { service, addresses: [first.address, ...others], token, wallet: new RawWallet(service, 'acme') };
}
