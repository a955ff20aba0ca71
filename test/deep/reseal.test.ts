import { createHmac, hkdfSync } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import { databases, rawSql, type TestDatabase } from '../support/databases.ts';
import { credentialBody, offerBody, type PopulatedTenant, populate } from '../support/populated.ts';
import { runProcess } from '../support/programs.ts';
import { newKey, RawWallet } from '../support/raw-wallet.ts';
import { createTenant, ROOT, startTestService, type TestService } from '../support/test-service.ts';

const FORMER = 'the secret that sealed everything so far';
const PRESENT = 'the secret that seals from now on 0123456';
const [FORMER_ID] = new MasterCipher({ masterSecrets: [FORMER] }).keyIds;

/** Finds every text that is sealed under the former secret, by table and column. */
function sealedUnder(url: string): Promise<string[]> {
  return rawSql(url, async (run) => {
    const isSqlite = url.startsWith('sqlite:');
    const names = isSqlite
      ? await run(`select name from sqlite_master where type = 'table'`)
      : await run(`select tablename as name from pg_tables where schemaname = current_schema()`);
    const sealedTexts = new Set<string>();
    for (const { name } of names) {
      for (const row of await run(`select * from "${name}"`)) {
        for (const [column, value] of Object.entries(row)) {
          const text = typeof value === 'string' ? value : JSON.stringify(value);
          if (text?.includes(`v1.${FORMER_ID}.`)) sealedTexts.add(`${name}.${column}`);
        }
      }
    }
    return [...sealedTexts];
  });
}

/** Expects plausible counts of each pass, not such as 1 of 0. */
function expectCounts(output: string): void {
  const passLines = output.split('\n').filter((line) => line.includes('resealed'));
  expect(passLines, output).to.not.deep.equal([]);
  for (const line of passLines) {
    const [, resealedCount, pending] = /^(\d+)(?: of (\d+))? resealed$/.exec(line) ?? [];
    expect(Number(resealedCount), line).to.be.within(1, Number(pending ?? resealedCount));
  }
}

for (const kind of databases()) {
  describe(`npm run reseal on ${kind.name}`, () => {
    let database: TestDatabase;
    let service: TestService;
    let shop: PopulatedTenant;
    const start = (secrets: string) => startTestService({ DATABASE_URL: database.url, MASTER_SECRET: secrets });
    const reseal = (secrets: string) => runProcess('commands/reseal', [], { DATABASE_URL: database.url, MASTER_SECRET: secrets });
    const issueCredential = async () => {
      const token = await service.token('acme-admin', adminSecret);
      const offer = await service.call('POST', '/issuer/offer', {
        token,
        json: { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [shop.ids.credential] },
      });
      const wallet = new RawWallet(service, 'acme');
      const answer = await wallet.request(await wallet.accessToken(offer.body.uri), shop.ids.credential, { key: newKey() });
      return answer.status;
    };
    let adminSecret = '';

    before(async function () {
      const connection = await kind.open();
      if (connection === undefined) return this.skip();
      database = connection;
      service = await start(FORMER);
      shop = await populate(service, 'acme');
      // A pending client secret is sealed, too.
      const clientResponse = await service.call('POST', '/client', {
        token: shop.token,
        json: { clientId: 'waiting', roles: ['presentation:request'] },
      });
      expect(clientResponse.status, clientResponse.text).to.equal(201);
      const rotation = await service.call('POST', '/client/acme-admin/rotate-secret', { token: await service.rootToken() });
      adminSecret = rotation.body.secret;
      await service.close();
    });
    after(async () => {
      await service?.close();
      await database?.drop();
    });

    it('explains what to do while there is one secret', async () => {
      const resealRun = await reseal(FORMER);
      expect(resealRun.code).to.equal(1);
      expect(resealRun.stderr).to.include('Add the new one before it');
    });

    it('leaves no data under the former secret while a service runs', async () => {
      expect(await sealedUnder(database.url)).to.include.members(['key_chains.body', 'sessions.request']);
      service = await start(`${PRESENT},${FORMER}`);
      let isStopped = false;
      const statuses = new Set<number>();
      const load = (async () => {
        while (!isStopped) statuses.add(await issueCredential());
      })();
      const resealRun = await reseal(`${PRESENT},${FORMER}`);
      isStopped = true;
      await load;
      expect(resealRun.code, resealRun.stderr).to.equal(0);
      expect(resealRun.stdout).to.include('can be removed from MASTER_SECRET');
      expectCounts(resealRun.stderr);
      expect([...statuses]).to.deep.equal([200]);
      expect(await sealedUnder(database.url)).to.deep.equal([]);
      await service.close();
    });

    it('reseals a key whose key chain was changed before', async function () {
      const OTHER_TENANT = 'the secret that comes after the present one 01';
      const otherDatabase = await kind.open();
      if (otherDatabase === undefined) return this.skip();
      const startOther = (secrets: string) => startTestService({ DATABASE_URL: otherDatabase.url, MASTER_SECRET: secrets });
      let secondService = await startOther(PRESENT);
      await populate(secondService, 'acme');
      const { body } = await secondService.call('POST', '/client/acme-admin/rotate-secret', { token: await secondService.rootToken() });
      await secondService.close();
      secondService = await startOther(`${OTHER_TENANT},${PRESENT}`);
      let token = await secondService.token('acme-admin', body.secret);
      const chains = (await secondService.call('GET', '/key-chain', { token })).body;
      for (const { id } of chains) {
        // This seals the row again, but not its nested secrets.
        const changeResponse = await secondService.call('PATCH', `/key-chain/${id}`, { token, json: { description: 'new' } });
        expect(changeResponse.status, changeResponse.text).to.equal(200);
      }
      const resealRun = await runProcess('commands/reseal', [], {
        DATABASE_URL: otherDatabase.url,
        MASTER_SECRET: `${OTHER_TENANT},${PRESENT}`,
      });
      expect(resealRun.code, resealRun.stderr).to.equal(0);
      expectCounts(resealRun.stderr);
      await secondService.close();
      secondService = await startOther(OTHER_TENANT);
      try {
        token = await secondService.token('acme-admin', body.secret);
        for (const { id } of chains) {
          const csr = await secondService.call('POST', `/key-chain/${id}/csr`, { token, json: {} });
          expect(csr.status, csr.text).to.equal(200);
        }
      } finally {
        await secondService.close();
        await otherDatabase.drop();
      }
    });

    it('keeps the service, its keys and its audit log working without the former secret', async () => {
      service = await start(PRESENT);
      expect(await issueCredential()).to.equal(200);
      const session = await service.call('GET', `/session/${shop.ids.verification}`, {
        token: await service.token('acme-admin', adminSecret),
      });
      expect(session.status, session.text).to.equal(200);
      const secretResponse = await service.call('GET', '/client/waiting/secret', { token: await service.token('acme-admin', adminSecret) });
      expect(secretResponse.status, secretResponse.text).to.equal(200);
      await service.close();
      const environment = { DATABASE_URL: database.url, MASTER_SECRET: PRESENT };
      const verified = await runProcess('commands/audit-verify', [], environment);
      expect(verified.code, verified.stdout + verified.stderr).to.equal(0);
    });

    it('leaves data under the former secret when a service seals with it again', async () => {
      await (await start(`${FORMER},${PRESENT}`)).close();
      const rejection = await start(PRESENT).then(
        async (startedService) => startedService.close(),
        (error: Error) => error.message,
      );
      expect(rejection).to.match(/not all of them are set/);
    });
  });
}

describe('former master secret', () => {
  it('verifies the transaction codes of offers that were created under it', async () => {
    const database = await databases()[0]?.open();
    if (database === undefined) throw new Error('SQLite is always there');
    const start = (MASTER_SECRET: string) => startTestService({ DATABASE_URL: database.url, MASTER_SECRET });
    const firstService = await start(FORMER);
    const { token } = await createTenant(firstService, 'acme');
    const post = (path: string, json: object) => firstService.call('POST', path, { token, json });
    await post('/issuer/credentials', credentialBody('card', 'signing'));
    const codes: string[] = [];
    for (let i = 0; i < 2; i++) {
      const { uri } = (await post('/issuer/offer', { ...offerBody('card'), tx_code: '402917' })).body;
      codes.push(await new RawWallet(firstService, 'acme').code(uri));
    }
    await firstService.close();
    const redeem = (service: TestService, code: string, txCode: string) => new RawWallet(service, 'acme').redeem(code, { tx_code: txCode });
    const secondService = await start(`${PRESENT},${FORMER}`);
    expect((await redeem(secondService, codes[0] ?? '', '000000')).body.error).to.equal('invalid_grant');
    expect((await redeem(secondService, codes[0] ?? '', '402917')).status).to.equal(200);
    await secondService.close();
    const thirdService = await start(`${FORMER},${PRESENT}`);
    expect((await redeem(thirdService, codes[1] ?? '', '402917')).status).to.equal(200);
    await thirdService.close();
    await database.drop();
  });

  it('signs no tokens: an attacker with the secret cannot issue a valid one', async () => {
    const formerService = await startTestService({ MASTER_SECRET: FORMER });
    const token = await formerService.rootToken();
    await formerService.close();
    const service = await startTestService({ MASTER_SECRET: `${PRESENT},${FORMER}` });
    expect((await service.call('GET', '/tenant', { token })).status).to.equal(401);
    await service.close();
  });

  it('is not needed for the account of the operator, whose tokens end with its own secret', async () => {
    const firstService = await startTestService({ MASTER_SECRET: FORMER });
    const token = await firstService.rootToken();
    expect((await firstService.call('GET', '/tenant', { token })).status).to.equal(200);
    await firstService.close();
    const service = await startTestService({
      MASTER_SECRET: FORMER,
      AUTH_CLIENT_ID: ROOT.clientId,
      AUTH_CLIENT_SECRET: 'another-secret-of-root',
    });
    expect((await service.call('GET', '/tenant', { token })).status).to.equal(401);
    await service.close();
  });
});

/** Changes the actor of the newest entry of the tenant `other`, with codes under the attacker's key. */
function forge(url: string, mac: (text: string) => string): Promise<void> {
  return rawSql(url, async (run) => {
    const rows = await run(`select * from audit_entries where tenant_id = 'other' order by sequence desc limit 2`);
    const [lastEntry, previousEntry] = rows as Record<string, string>[];
    if (lastEntry === undefined || previousEntry === undefined) throw new Error('no entries');
    const { sequence, at: service, action, kind, target, detail } = lastEntry;
    const entry = [
      'vidimus audit entry 1',
      'other',
      Number(sequence),
      Number(service),
      'forged',
      action,
      kind,
      target,
      detail,
      previousEntry['hash'],
    ];
    const hash = mac(JSON.stringify(entry));
    const seal = mac(JSON.stringify(['vidimus audit head 1', 'other', Number(sequence), hash]));
    await run(`update audit_entries set actor = 'forged', hash = '${hash}' where tenant_id = 'other' and sequence = ${sequence}`);
    await run(`update audit_heads set hash = '${hash}', seal = '${seal}' where tenant_id = 'other'`);
  });
}

for (const kind of databases()) {
  describe(`former master secret that a process still uses on ${kind.name}`, () => {
    let database: TestDatabase;
    beforeEach(async function () {
      const connection = await kind.open();
      if (connection === undefined) return this.skip();
      database = connection;
    });
    afterEach(() => database?.drop());
    const start = (secrets: string) => startTestService({ DATABASE_URL: database.url, MASTER_SECRET: secrets });
    const command = (name: string, secrets: string) =>
      runProcess(`commands/${name}`, [], { DATABASE_URL: database.url, MASTER_SECRET: secrets });

    it('is not removed while a process seals under it, in any order of the commands', async () => {
      const lateService = await start(`${FORMER},${PRESENT}`);
      await populate(lateService, 'acme');
      const rejection = await command('reseal', `${PRESENT},${FORMER}`);
      expect(rejection.code, rejection.stdout).to.equal(1);
      expect(rejection.stderr).to.match(/still being sealed under a former secret/);
      const outcome = await start(PRESENT).then(
        async (service) => service.close().then(() => 'started'),
        () => 'refused',
      );
      expect(outcome, 'a start without it').to.equal('refused');
      await lateService.close();
      const resealRun = await command('reseal', `${PRESENT},${FORMER}`);
      expect(resealRun.code, resealRun.stderr).to.equal(0);
      await (await start(PRESENT)).close();
    });

    it('forges no audit log entry that was written under the present secret', async () => {
      const firstService = await start(FORMER);
      await populate(firstService, 'acme');
      await firstService.close();
      expect((await command('reseal', `${PRESENT},${FORMER}`)).code).to.equal(0);
      const secondService = await start(PRESENT);
      await populate(secondService, 'other');
      await secondService.close();
      expect((await command('audit-verify', PRESENT)).code).to.equal(0);
      // An attacker with the former secret and write access changes the newest entry of a tenant that was created later.
      const [id] = new MasterCipher({ masterSecrets: [FORMER] }).keyIds;
      const root = Buffer.from(hkdfSync('sha256', FORMER, Buffer.alloc(0), 'vidimus/mac', 32));
      const key = Buffer.from(hkdfSync('sha256', root, '', AUDIT_LOG, 32));
      const mac = (text: string) => `${id}.${createHmac('sha256', key).update(text).digest('base64url')}`;
      await forge(database.url, mac);
      expect((await command('audit-verify', PRESENT)).code).to.equal(1);
    });
  });
}
