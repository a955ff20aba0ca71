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

/** Replaces the port of a service. */
const local = (text = '') => text.replaceAll(/localhost(:|%3A)\d+/g, 'localhost');

describeUpgrade('database of the first release', (upgrade) => {
  it('is upgraded with all its data', async () => {
    const { start, downgrade: goBack } = upgrade();
    const release = await start();
    const { token } = await createTenant(release, 'acme');
    const create = async (path: string, json: object) => {
      const answer = await release.call('POST', path, { token, json });
      expect(answer.status, answer.text).to.equal(201);
      return answer.body;
    };
    await create('/issuer/credentials', CARD);
    await create('/verifier/config', { id: 'check', dcql_query: QUERY });
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { session } = await create('/issuer/offer', offer);
    const paths = ['/client', '/issuer/credentials', '/verifier/config', '/key-chain', `/session/${session}`];
    const readAll = (from: TestService) => Promise.all(paths.map(async (path) => (await from.call('GET', path, { token })).text));
    const before = await readAll(release);
    await release.close();

    // Later migrations are undone, as if they had never run.
    await goBack(FIRST);

    const service = await start();
    const afterUpgrade = await readAll(service);
    for (const [index, path] of paths.entries()) expect(local(afterUpgrade[index]), path).to.equal(local(before[index]));
    const secondOffer = await service.call('POST', '/issuer/offer', { token, json: offer });
    expect(secondOffer.status, secondOffer.text).to.equal(201);
    for (const table of ['/audit-log', '/trust-list', '/status-lists']) {
      expect((await service.call('GET', table, { token })).status, table).to.equal(200);
    }

    // The tenant is older than the log, and the report warns of it.
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

const cardWithName = (name: string) => ({
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name, locale: 'en' }] },
  vct: 'urn:card',
  claims: { name: 'Ada' },
});

/** The display name of the credential in the issuer metadata, from the cached configuration of the process. */
async function readDisplayName(service: TestService): Promise<string> {
  const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
  return body.credential_configurations_supported.card.credential_metadata.display[0].name;
}

describeUpgrade('database with one revision for each tenant', (upgrade, kind) => {
  const BEFORE = 'Migration00000000000007_sealed_errors';

  it('continues with its configuration and with open sessions', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const olderService = await start();
    const { token } = await createTenant(olderService, 'acme');
    const send = async (service: TestService, method: string, path: string, json: object) => {
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
      return answer.body;
    };
    await send(olderService, 'POST', '/issuer/credentials', cardWithName('Card'));
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
    const { session } = await send(olderService, 'POST', '/issuer/offer', offer);
    await olderService.close();
    await goBack(BEFORE);

    const service = await start();
    expect(await readDisplayName(service)).to.equal('Card');
    expect((await service.call('GET', `/session/${session}`, { token })).body.status).to.equal('active');
    await send(service, 'PATCH', '/issuer/credentials/card', { config: cardWithName('Pass').config });
    expect(await readDisplayName(service)).to.equal('Pass');
    await send(service, 'POST', '/issuer/offer', offer);
    await service.close();
    const [row] = await rawSql(url, (run) => run('select revisions from tenants'));
    const revisions = typeof row?.['revisions'] === 'string' ? JSON.parse(row['revisions']) : row?.['revisions'];
    expect(revisions, 'a migration adds new kinds to existing tenants').to.include.all.keys(...CONFIGURED_KINDS);
  });

  // SQLite supports one process only.
  if (kind === 'sqlite') return;

  it('can be written by a process of the previous release while both run', async () => {
    const { url, start } = upgrade();
    const service = await start();
    const { token } = await createTenant(service, 'acme');
    await service.call('POST', '/issuer/credentials', { token, json: cardWithName('Card') });
    const bodies = await rawSql(url, (run) => run('select body from credential_configurations'));
    const change = { token, json: { config: cardWithName('Pass').config } };
    expect((await service.call('PATCH', '/issuer/credentials/card', change)).status).to.equal(200);
    expect(await readDisplayName(service)).to.equal('Pass');

    // The older release has one revision, which it increments with each write.
    await rawSql(url, async (run) => {
      await run(`update credential_configurations set body = '${bodies[0]?.['body']}'`);
      await run("update tenants set revision = revision + 1 where id = 'acme'");
    });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await readDisplayName(service)).to.equal('Card');
  });
});

const CLIENTS = ['one', 'two', 'three'].map((clientId) => ({
  ...{ clientId, secret: `secret-of-${clientId}-0123456789`, roles: ['issuance:offer'] },
}));

describeUpgrade('database of a release without client MACs', (upgrade, kind) => {
  const BEFORE = 'Migration00000000000025_pending_deliveries';

  it('adds a MAC to each client at the first start, and none to a row that is changed later', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const olderService = await start();
    const { token } = await createTenant(olderService, 'acme');
    for (const json of CLIENTS) {
      expect((await olderService.call('POST', '/client', { token, json })).status).to.equal(201);
    }
    await olderService.close();
    await goBack(BEFORE);

    const first = await start();
    const logins = async (service: TestService) => {
      const responses = CLIENTS.map(({ clientId, secret }) =>
        service.call('POST', '/oauth2/token', { json: { grant_type: 'client_credentials', client_id: clientId, client_secret: secret } }),
      );
      return (await Promise.all(responses)).map(({ status }) => status);
    };
    expect(await logins(first)).to.deep.equal([200, 200, 200]);
    await first.close();
    await rawSql(url, async (run) => {
      await run(`update clients set roles = '["clients:manage"]' where client_id = 'one'`);
      await run(`update clients set mac = null where client_id = 'two'`);
      // As a process of the previous release writes it.
      await run(`update clients set description = 'x', roles = '["issuance:manage"]', version = version + 1,
        updated_at = ${Date.now()} where client_id = 'three'`);
    });
    const isRollingUpgrade = kind === 'postgres';
    expect(await logins(await start())).to.deep.equal([401, 401, isRollingUpgrade ? 200 : 401]);
  });
});

const KEYS = `'[{"kty":"EC","crv":"P-256","x":"x","y":"y"}]'`;

describeUpgrade('database of a release that kept wallet keys', (upgrade) => {
  const BEFORE = 'Migration00000000000016_profiles';

  it('removes the keys of ended transactions, and no others', async () => {
    const { url, start, downgrade: goBack } = upgrade();
    const olderService = await start();
    const { token, ids } = await populate(olderService, 'acme');
    await olderService.close();
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
    const transactions = answer.body.map(({ transactionId, holderKeys }: { transactionId: string; holderKeys: object[] }) => [
      transactionId,
      holderKeys.length,
    ]);
    expect(new Map(transactions)).to.deep.equal(
      new Map([[ids.deferred, 1], ...['retrieved', 'failed', 'expired'].map((id) => [id, 0] as const)]),
    );
  });
});

describeUpgrade('database of a release that did not record removed clients', (upgrade) => {
  const BEFORE = 'Migration00000000000005_sealing_keys';

  it('reads removed tenants from the audit log', async () => {
    const { start, downgrade: goBack } = upgrade();
    const olderService = await start();
    const { token } = await createTenant(olderService, 'acme');
    const call = async (method: string, path: string, json?: object) => {
      const answer = await olderService.call(method, path, { token, ...(json === undefined ? {} : { json }) });
      expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    };
    for (const clientId of ['gone', 'back']) {
      await call('POST', '/client', { clientId, roles: ['issuance:offer'] });
      await call('DELETE', `/client/${clientId}`);
      await call('POST', '/client', { clientId, roles: ['issuance:offer'] });
      if (clientId === 'gone') await call('DELETE', `/client/${clientId}`);
    }
    await olderService.close();
    await goBack(BEFORE);

    const { container } = (await start()).service;
    const isRemoved = (clientId: string) =>
      container.get(Store).forService(({ clients }) => clients.isRemoved('acme' as TenantId, clientId));
    expect(await Promise.all(['gone', 'back', 'never'].map(isRemoved))).to.deep.equal([true, false, false]);
  });
});

const NAME = 'Wilhelmina Unmistakable';
const PLAIN_MESSAGE = `no record of ${NAME}. `.repeat(25);

describeUpgrade('database with unsealed errors of deferred transactions', (upgrade) => {
  const BEFORE = 'Migration00000000000006_removed_clients';

  it('removes the errors, and shows the transactions without them', async () => {
    const { kind, url, start, downgrade: goBack } = upgrade();
    const olderService = await start();
    const { token, ids } = await populate(olderService, 'acme');
    const path = `/issuer/deferred/${ids.deferred}`;
    const json = { errorMessage: 'unknown' };
    expect((await olderService.call('POST', `${path}/fail`, { token, json })).status).to.equal(200);
    await olderService.close();
    await goBack(BEFORE);
    await rawSql(url, (run) => run(`update deferred_transactions set error_message = '${PLAIN_MESSAGE}'`));

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
    expect(bytes.includes(ids.deferred), 'the file contains the transaction').to.equal(true);
    expect(bytes.includes(NAME)).to.equal(false);
  });
});
