import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect } from 'chai';
import { AUDIT_LOG } from '../../adapters/persistence/audit-keys.ts';
import type { ChainReport } from '../../application/audit/chain-reports.ts';
import { VerifyAuditLog } from '../../application/audit/verify-audit-log.ts';
import { Cipher } from '../../application/ports/cipher.ts';
import { Store } from '../../application/ports/store.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { CONFIGURED_KINDS } from '../../domain/tenants/revisions.ts';
import { rawSql } from '../support/databases.ts';
import { populate } from '../support/populated.ts';
import { QUERY } from '../support/present.ts';
import { createTenant, type TestService } from '../support/test-service.ts';
import { describeUpgrade } from '../support/upgrade.ts';

const FIRST = 'Migration00000000000001_initial';
const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card',
  claims: { name: 'Ada' },
  disclosureFrame: { _sd: ['name'] },
  statusManagement: true,
};

/** Whatever port a service happens to have. */
const local = (text = '') => text.replaceAll(/localhost(:|%3A)\d+/g, 'localhost');

describeUpgrade('database of the first release', (upgrade) => {
  it('is upgraded with all its data', async () => {
    const { start, downgrade: goBack } = upgrade();
    const release = await start();
    const { token } = await createTenant(release, 'acme');
    const made = async (path: string, json: object) => {
      const answer = await release.call('POST', path, { token, json });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    await made('/issuer/credentials', CARD);
    await made('/verifier/config', { id: 'check', dcql_query: QUERY });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { session } = await made('/issuer/offer', offer);
    const paths = ['/client', '/issuer/credentials', '/verifier/config', '/key-chain', `/session/${session}`];
    const readAll = (from: TestService) => Promise.all(paths.map(async (path) => (await from.call('GET', path, { token })).text));
    const before = await readAll(release);
    await release.close();

    // What came later is taken away, as if it had never been there.
    await goBack(FIRST);

    const service = await start();
    const after = await readAll(service);
    for (const [index, path] of paths.entries()) expect(local(after[index]), path).to.equal(local(before[index]));
    const again = await service.call('POST', '/issuer/offer', { token, json: offer });
    expect(again.status, again.text).to.equal(201);
    for (const table of ['/audit-log', '/trust-list', '/status-lists']) {
      expect((await service.call('GET', table, { token })).status, table).to.equal(200);
    }

    // The tenant is older than the log, which says so.
    const { container } = service.service;
    const ports = { store: container.get(Store), macs: container.get(Cipher).macs(AUDIT_LOG) };
    const reports: ChainReport[] = [];
    for await (const report of new VerifyAuditLog(ports).execute()) reports.push(report);
    expect(reports.map(({ scope, fault }) => [scope, fault])).to.deep.equal([
      ['', undefined],
      ['acme', undefined],
    ]);
    expect(reports[0]?.warning).to.include('when there was 1 tenant already');
  });
});

const cardNamed = (name: string) => ({
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name, locale: 'en' }] },
  vct: 'urn:card',
  claims: { name: 'Ada' },
});

/** What wallets are told the credential is called: by the configuration as the process knows it. */
async function shownName(service: TestService): Promise<string> {
  const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
  return body.credential_configurations_supported.card.credential_metadata.display[0].name;
}

describeUpgrade('database with one revision for each tenant', (upgrade, kind) => {
  const BEFORE = 'Migration00000000000007_sealed_errors';

  it('continues with its configuration and with open sessions', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const older = await start();
    const { token } = await createTenant(older, 'acme');
    const made = async (service: TestService, method: string, path: string, json: object) => {
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      return answer.body;
    };
    await made(older, 'POST', '/issuer/credentials', cardNamed('Card'));
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { session } = await made(older, 'POST', '/issuer/offer', offer);
    await older.close();
    await goBack(BEFORE);

    const service = await start();
    expect(await shownName(service)).to.equal('Card');
    expect((await service.call('GET', `/session/${session}`, { token })).body.status).to.equal('active');
    await made(service, 'PATCH', '/issuer/credentials/card', { config: cardNamed('Pass').config });
    expect(await shownName(service)).to.equal('Pass');
    await made(service, 'POST', '/issuer/offer', offer);
    await service.close();
    const [row] = await rawSql(url, (run) => run('select revisions from tenants'));
    const revisions = typeof row?.['revisions'] === 'string' ? JSON.parse(row['revisions']) : row?.['revisions'];
    expect(revisions, 'a migration gives new kinds to the tenants that there are').to.include.all.keys(...CONFIGURED_KINDS);
  });

  // SQLite belongs to one process.
  if (kind === 'sqlite') return;

  it('can be written by a process of the previous release while both run', async () => {
    const { url, start } = upgrade();
    const service = await start();
    const { token } = await createTenant(service, 'acme');
    await service.call('POST', '/issuer/credentials', { token, json: cardNamed('Card') });
    const bodies = await rawSql(url, (run) => run('select body from credential_configurations'));
    const change = { token, json: { config: cardNamed('Pass').config } };
    expect((await service.call('PATCH', '/issuer/credentials/card', change)).status).to.equal(200);
    expect(await shownName(service)).to.equal('Pass');

    // It knows of one revision, which it raises with each write.
    await rawSql(url, async (run) => {
      await run(`update credential_configurations set body = '${bodies[0]?.['body']}'`);
      await run("update tenants set revision = revision + 1 where id = 'acme'");
    });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await shownName(service)).to.equal('Card');
  });
});

const CLIENTS = ['one', 'two', 'three'].map((clientId) => ({
  ...{ clientId, secret: `secret-of-${clientId}-0123456789`, roles: ['issuance:offer'] },
}));

describeUpgrade('database of a release without client MACs', (upgrade, kind) => {
  const BEFORE = 'Migration00000000000025_pending_deliveries';

  it('adds a MAC to each client at the first start, and none to a row that is changed later', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const older = await start();
    const { token } = await createTenant(older, 'acme');
    for (const json of CLIENTS) {
      expect((await older.call('POST', '/client', { token, json })).status).to.equal(201);
    }
    await older.close();
    await goBack(BEFORE);

    const first = await start();
    const logins = async (service: TestService) => {
      const answers = CLIENTS.map(({ clientId, secret }) =>
        service.call('POST', '/oauth2/token', { json: { grant_type: 'client_credentials', client_id: clientId, client_secret: secret } }),
      );
      return (await Promise.all(answers)).map(({ status }) => status);
    };
    expect(await logins(first)).to.deep.equal([200, 200, 200]);
    await first.close();
    await rawSql(url, async (run) => {
      await run(`update clients set roles = '["clients:manage"]' where client_id = 'one'`);
      await run(`update clients set mac = null where client_id = 'two'`);
      // As a process of the release before writes it.
      await run(`update clients set description = 'x', roles = '["issuance:manage"]', version = version + 1,
        updated_at = ${Date.now()} where client_id = 'three'`);
    });
    const isRolling = kind === 'postgres';
    expect(await logins(await start())).to.deep.equal([401, 401, isRolling ? 200 : 401]);
  });
});

const KEYS = `'[{"kty":"EC","crv":"P-256","x":"x","y":"y"}]'`;

describeUpgrade('database of a release that kept wallet keys', (upgrade) => {
  const BEFORE = 'Migration00000000000016_profiles';

  it('removes the keys of ended transactions, and no others', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const older = await start();
    const { token, ids } = await populate(older, 'acme');
    await older.close();
    await goBack(BEFORE);
    const columns = `session_id, public_id, grant_id, credential_configuration_id, interval_seconds, credentials, batch_id,
      error_message, created_at, updated_at, expires_at, tenant_id`;
    await rawSql(url, async (run) => {
      for (const status of ['retrieved', 'failed', 'expired']) {
        await run(`insert into deferred_transactions (id, status, holder_keys, ${columns})
          select '${status}', '${status}', ${KEYS}, ${columns} from deferred_transactions where id = '${ids.deferred}'`);
      }
    });

    const service = await start();
    const answer = await service.call('GET', '/issuer/deferred', { token });
    const kept = answer.body.map(({ transactionId, holderKeys }: { transactionId: string; holderKeys: object[] }) => [
      transactionId,
      holderKeys.length,
    ]);
    expect(new Map(kept)).to.deep.equal(new Map([[ids.deferred, 1], ...['retrieved', 'failed', 'expired'].map((id) => [id, 0] as const)]));
  });
});

describeUpgrade('database of a release that did not record removed clients', (upgrade) => {
  const BEFORE = 'Migration00000000000005_sealing_keys';

  it('reads removed tenants from the audit log', async () => {
    const { start, downgrade: goBack } = upgrade();
    const older = await start();
    const { token } = await createTenant(older, 'acme');
    const call = async (method: string, path: string, json?: object) => {
      const answer = await older.call(method, path, { token, ...(json === undefined ? {} : { json }) });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    };
    for (const clientId of ['gone', 'back']) {
      await call('POST', '/client', { clientId, roles: ['issuance:offer'] });
      await call('DELETE', `/client/${clientId}`);
      await call('POST', '/client', { clientId, roles: ['issuance:offer'] });
      if (clientId === 'gone') await call('DELETE', `/client/${clientId}`);
    }
    await older.close();
    await goBack(BEFORE);

    const { container } = (await start()).service;
    const removed = (clientId: string) => container.get(Store).forService(({ clients }) => clients.isRemoved('acme' as TenantId, clientId));
    expect(await Promise.all(['gone', 'back', 'never'].map(removed))).to.deep.equal([true, false, false]);
  });
});

const NAME = 'Wilhelmina Unmistakable';
const PLAIN = `no record of ${NAME}. `.repeat(25);

describeUpgrade('database with unsealed errors of deferred transactions', (upgrade) => {
  const BEFORE = 'Migration00000000000006_removed_clients';

  it('removes the errors, and shows the transactions without them', async () => {
    const { kind, url, start, downgrade: goBack } = upgrade();
    const older = await start();
    const { token, ids } = await populate(older, 'acme');
    const path = `/issuer/deferred/${ids.deferred}`;
    const json = { errorMessage: 'nobody' };
    expect((await older.call('POST', `${path}/fail`, { token, json })).status).to.equal(200);
    await older.close();
    await goBack(BEFORE);
    await rawSql(url, (run) => run(`update deferred_transactions set error_message = '${PLAIN}'`));

    const service = await start();
    const answer = await service.call('GET', path, { token });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body).to.include({ status: 'failed' }).and.to.not.have.property('errorMessage');
    expect((await service.call('GET', '/issuer/deferred', { token })).status).to.equal(200);
    const select = 'select count(*) as plain from deferred_transactions where error_message is not null';
    expect(Number((await rawSql(url, (run) => run(select)))[0]?.['plain'])).to.equal(0);
    if (kind !== 'sqlite') return;
    await service.close();
    const file = url.slice('sqlite:'.length);
    const files = readdirSync(dirname(file)).filter((name) => name.startsWith(basename(file)));
    const bytes = Buffer.concat(files.map((name) => readFileSync(join(dirname(file), name))));
    expect(bytes.includes(ids.deferred), 'this is the right file').to.equal(true);
    expect(bytes.includes(NAME)).to.equal(false);
  });
});
