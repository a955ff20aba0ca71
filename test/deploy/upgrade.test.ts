import { globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import { freePort } from '../demo/process.ts';
import { type DatabaseKind, databases, type TestDatabase } from '../support/databases.ts';
import { Releases, stop } from '../support/first-release.ts';
import { created, credentialBody, offerBody } from '../support/populated.ts';
import { type Asked, ask, decode, type Held, issue, present } from '../support/present.ts';
import { endPrograms } from '../support/program.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { runProcess } from '../support/run-command.ts';
import { type Callable, createTenant, type TestService } from '../support/test-service.ts';

const QUERY = {
  id: 'check',
  dcql_query: {
    credentials: [
      {
        id: 'pid',
        format: 'dc+sd-jwt',
        meta: { vct_values: ['urn:upgrade:pid'] },
        claims: [{ path: ['given_name'] }],
      },
    ],
  },
  trustAnchors: [{ keyChainId: 'signing' }],
};
const CREDENTIAL = { ...credentialBody('pid', 'signing'), vct: 'urn:upgrade:pid', subjectClaims: undefined };

/** What the first release leaves behind. */
type Left = {
  readonly token: string;
  readonly secret: string;
  readonly valid: Held;
  readonly revoked: Held;
  /** Nobody has opened it. */
  readonly openOffer: { readonly uri: string; readonly session: string };
  /** A wallet that has its access token, and no credential yet. */
  readonly halfway: { readonly wallet: RawWallet; readonly accessToken: string; readonly session: string };
  readonly openRequest: Asked;
  readonly chains: readonly { readonly id: string; readonly certificate?: string }[];
};

/** The number of the last migration that the first release has. */
const LAST_OF_FIRST = 7;

const asService = (calls: Callable) => calls as unknown as TestService;

async function leave(calls: Callable): Promise<Left> {
  const { token, id } = await createTenant(calls, 'acme');
  const secret = 'secret-of-the-shop-0123456789';
  await created(calls, token, '/client', { clientId: 'shop', secret, roles: ['issuance:offer'] });
  const json = { bits: 1, capacity: 1000, ttl: 900, immediateUpdate: true };
  expect((await calls.call('PUT', '/status-list-config', { token, json })).status).to.equal(200);
  await created(calls, token, '/issuer/credentials', CREDENTIAL);
  await created(calls, token, '/verifier/config', QUERY);
  const issuer = { id, token };
  const [valid, revoked] = [
    await issue(asService(calls), issuer, 'pid'),
    await issue(asService(calls), issuer, 'pid'),
  ];
  await revoke(calls, token, revoked);
  const openOffer = await created(calls, token, '/issuer/offer', offerBody('pid'));
  const begun = await created(calls, token, '/issuer/offer', offerBody('pid'));
  const wallet = new RawWallet(calls, id);
  const accessToken = await wallet.accessToken(begun.uri);
  const openRequest = await ask(asService(calls), token, 'check');
  const { body: chains } = await calls.call('GET', '/key-chain', { token });
  return {
    ...{ token, secret, valid, revoked, openOffer, openRequest, chains },
    halfway: { wallet, accessToken, session: begun.session },
  };
}

/** The bit of a credential in the list that its issuer publishes. */
async function statusOf(calls: Callable, { text }: Held): Promise<number> {
  const { uri, idx } = decode(text).payload['status'].status_list as { uri: string; idx: number };
  const list = await calls.call('GET', uri, { headers: { Accept: 'application/statuslist+jwt' } });
  expect(list.status, list.text).to.equal(200);
  const { bits, lst } = decode(list.text).payload['status_list'] as { bits: number; lst: string };
  expect(bits).to.equal(1);
  const bytes = inflateSync(Buffer.from(lst, 'base64url'));
  return ((bytes[idx >> 3] ?? 0) >> (idx & 7)) & 1;
}

async function revoke(calls: Callable, token: string, { session }: Pick<Held, 'session'>): Promise<void> {
  const answer = await calls.call('POST', '/session/revoke', {
    token,
    json: { sessionId: session, status: 1 },
  });
  expect(answer.status, answer.text).to.equal(201);
}

async function collect(calls: Callable, uri: string): Promise<RawWallet> {
  const wallet = new RawWallet(calls, 'acme');
  const collected = await wallet.request(await wallet.accessToken(uri), 'pid', { key: newKey() });
  expect(collected.status, `an open offer: ${collected.text}`).to.equal(200);
  return wallet;
}

async function show(calls: Callable, token: string, held: Held): Promise<number> {
  return (await present(asService(calls), await ask(asService(calls), token, 'check'), held)).status;
}

async function goesOn(calls: Callable, left: Left): Promise<void> {
  const { token } = left;
  const { status: known } = await calls.call('GET', '/issuer/credentials', { token });
  expect(known, 'an access token that the first release gave').to.equal(200);
  expect(await statusOf(calls, left.valid)).to.equal(0);
  expect(await statusOf(calls, left.revoked)).to.equal(1);
  const { body: chains } = await calls.call('GET', '/key-chain', { token });
  expect(chains.map(({ id }: { id: string }) => id)).to.deep.equal(left.chains.map(({ id }) => id));

  const { wallet, accessToken } = left.halfway;
  const collected = await new RawWalletOf(wallet, calls).request(accessToken, 'pid', { key: newKey() });
  expect(collected.status, `the wallet that was halfway: ${collected.text}`).to.equal(200);
  const second = await collect(calls, left.openOffer.uri);
  const again = await second.redeem(await second.code(left.openOffer.uri).catch(() => ''));
  expect(again.status, 'the offer once more').to.equal(400);
  for (const { session } of [left.halfway, left.openOffer]) {
    const { body } = await calls.call('GET', `/session/${session}`, { token });
    expect(body.status).to.equal('completed');
  }

  const answered = await present(asService(calls), left.openRequest, left.valid);
  expect(answered.status, `the open request: ${answered.text}`).to.equal(200);
  expect(await show(calls, token, left.valid), 'a valid credential').to.equal(200);
  expect(await show(calls, token, left.revoked), 'a revoked credential').to.equal(400);
  await revoke(calls, token, left.valid);
  expect(await show(calls, token, left.valid), 'one that was revoked by this release').to.equal(400);
  await calls.token('shop', left.secret);
}

/** The same wallet, with its keys, which calls another process. */
class RawWalletOf extends RawWallet {
  override readonly dpopKey: RawWallet['dpopKey'];

  constructor(former: RawWallet, calls: Callable) {
    super(calls, former.tenant);
    this.dpopKey = former.dpopKey;
  }
}

/** @returns what `work` had to say, again and again, while something starts. */
async function whileStarting<T>(
  start: () => Promise<unknown>,
  work: () => Promise<T>,
): Promise<readonly T[]> {
  const said: T[] = [];
  let isStarted = false;
  const started = start().finally(() => {
    isStarted = true;
  });
  while (!isStarted) said.push(await work());
  await started;
  return said;
}

describe('Migrations', () => {
  it('take nothing away that a former release reads, or stand in docs/upgrading.md', () => {
    const page = readFileSync(new URL('../../docs/upgrading.md', import.meta.url), 'utf8');
    const files = globSync('adapters/persistence/migrations/*/Migration*.ts');
    const later = files.filter((file) => Number(/Migration0*(\d+)/.exec(file)?.[1]) > LAST_OF_FIRST);
    expect(later.length).to.be.greaterThan(20);
    for (const file of later) {
      const takesAway = /drop (table|column)|rename (to|column)|alter column \S+ (type|set not null)/i;
      const [name = ''] = /Migration\d+/.exec(file) ?? [];
      if (takesAway.test(readFileSync(file, 'utf8'))) expect(page, file).to.include(name);
    }
  });
});

for (const kind of databases()) describe(`From the first release, on ${kind.name}`, suite(kind));

function suite(kind: DatabaseKind) {
  return function (this: Mocha.Suite) {
    this.timeout(120_000);
    let database: TestDatabase | undefined;
    let releases: Releases;
    let ports: [number, number];

    beforeEach(async function () {
      database = await kind.openEmpty();
      if (database === undefined) return this.skip();
      ports = [await freePort(createServer), await freePort(createServer)];
      releases = new Releases(`http://localhost:${ports[0]}`, { DATABASE_URL: database.url });
    });
    afterEach(async () => {
      await endPrograms();
      releases?.remove();
      await database?.drop();
    });

    const leaveBehind = async (): Promise<Left> => {
      const first = await releases.start('first', ports[0]);
      const left = await leave(releases.callsTo(ports[0]));
      await stop(first);
      return left;
    };

    it('everything goes on: offers, tokens, requests, what was revoked, and the audit log', async () => {
      const left = await leaveBehind();
      await releases.start('present', ports[0]);
      await goesOn(releases.callsTo(ports[0]), left);
      const environment = releases.environment(ports[0]);
      const verified = await runProcess('commands/audit-verify', [], environment);
      expect(verified.code, verified.stderr).to.equal(0);
      const examined = await runProcess('commands/doctor', [], environment);
      expect(examined.code, examined.stdout).to.equal(0);
    });

    it('goes back with what this release has made, and forward again', async () => {
      const left = await leaveBehind();
      const present = await releases.start('present', ports[0]);
      const calls = releases.callsTo(ports[0]);
      const { token } = left;
      const made = await issue(asService(calls), { id: 'acme', token }, 'pid');
      const openOffer = await created(calls, token, '/issuer/offer', offerBody('pid'));
      await createTenant(calls, 'later');
      const kiosk = {
        clientId: 'kiosk',
        secret: 'secret-of-the-kiosk-0123456789',
        roles: ['issuance:offer'],
      };
      await created(calls, token, '/client', kiosk);
      const rotated = await calls.call('POST', '/client/kiosk/rotate-secret?graceSeconds=300', { token });
      await stop(present);

      const former = await releases.start('first', ports[0]);
      await goesOn(calls, left);
      expect(await show(calls, token, made), 'a credential of this release').to.equal(200);
      await revoke(calls, token, made);
      expect(await statusOf(calls, made)).to.equal(1);
      await collect(calls, openOffer.uri);
      await createTenant(calls, 'meanwhile');
      await calls.token('kiosk', rotated.body.secret);
      const refused = await calls.token('kiosk', kiosk.secret).catch((error: Error) => error.message);
      expect(refused, 'the former secret, in its time of grace').to.include('401');
      await stop(former);

      await releases.start('present', ports[0]);
      expect(await statusOf(calls, made)).to.equal(1);
      expect(await show(calls, token, made)).to.equal(400);
      const last = await issue(asService(calls), { id: 'acme', token }, 'pid');
      expect(await show(calls, token, last)).to.equal(200);
      const verified = await runProcess('commands/audit-verify', [], releases.environment(ports[0]));
      expect(verified.code, verified.stdout).to.equal(0);
    });

    if (kind.name === 'postgres')
      it('both releases serve side by side during an upgrade', async () => {
        const first = await releases.start('first', ports[0]);
        const left = await leave(releases.callsTo(ports[0]));
        const statuses = await whileStarting(
          () => releases.start('present', ports[1]),
          async () => {
            const calls = releases.callsTo(ports[0]);
            return (await calls.call('POST', '/issuer/offer', { token: left.token, json: offerBody('pid') }))
              .status;
          },
        );
        expect(new Set(statuses), 'of the first release, while tables are brought up to date').to.have.keys(
          201,
        );
        expect(statuses.length).to.be.greaterThan(10);
        const [old, fresh] = [releases.callsTo(ports[0]), releases.callsTo(ports[1])];
        const { token } = left;
        // What one begins, the other one ends.
        for (const [from, to] of [
          [old, fresh],
          [fresh, old],
        ] as const) {
          const offer = await created(from, token, '/issuer/offer', offerBody('pid'));
          await collect(to, offer.uri);
          const held = await issue(asService(from), { id: 'acme', token }, 'pid');
          const asked = await ask(asService(from), token, 'check');
          expect((await present(asService(to), asked, held)).status).to.equal(200);
          await revoke(to, token, held);
          expect(await show(from, token, held), 'revoked by the other one').to.equal(400);
          expect(await statusOf(from, held)).to.equal(1);
        }
        await goesOn(fresh, left);
        await stop(first);
        const verified = await runProcess('commands/audit-verify', [], releases.environment(ports[1]));
        expect(verified.code, verified.stdout).to.equal(0);
      });
  };
}
