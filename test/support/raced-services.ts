import type { DatabaseKind, TestDatabase } from './databases.ts';
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
  /** Administrator of the wallet's tenant, which issues `pid`. */
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

/** What is raced, and its tests. */
export type RacedSuite = readonly [subject: string, define: (racing: () => Racing) => void];

/**
 * Defines the tests of all suites for a kind of database, and on PostgreSQL for two processes too. Starting processes takes
 * longer than most suites, so all of them have the same ones, each with a tenant of its own.
 */
export function describeRaces(kind: DatabaseKind, suites: readonly RacedSuite[]): void {
  // SQLite belongs to one process.
  for (const processes of kind.name === 'sqlite' ? [1] : [1, 2]) {
    const where = `on ${kind.name} in ${processes === 1 ? 'one process' : 'two processes'}`;
    describe(`Races ${where}`, () => {
      let database: TestDatabase | undefined;
      let first: TestService | undefined;
      let second: SecondProcess | undefined;
      before(async function () {
        database = await kind.open();
        if (database === undefined) return this.skip();
        const environment = { DATABASE_URL: database.url, MASTER_SECRET, OUTBOUND_ALLOW: '127.0.0.1/32' };
        first = await startTestService(environment);
        if (processes === 2) second = await startSecond(first.address, environment);
      });
      after(async () => {
        await second?.stop();
        await first?.close();
        await database?.drop();
      });
      for (const [index, [subject, define]] of suites.entries()) {
        describe(`${subject} ${where}`, () => {
          let racing: Racing;
          before(async () => {
            if (first === undefined) throw new Error('the service was not started');
            racing = await prepare(`acme-${index}`, first, second === undefined ? [] : [second.address]);
          });
          define(() => racing);
        });
      }
    });
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

async function prepare(id: string, first: TestService, others: readonly string[]): Promise<Racing> {
  const service = spread(first, others);
  const { token } = await createTenant(service, id);
  await created(service, token, '/issuer/credentials', credentialBody('pid', 'signing'));
  return { service, addresses: [first.address, ...others], token, wallet: new RawWallet(service, id) };
}
